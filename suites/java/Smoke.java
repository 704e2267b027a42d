// Smoke suite of MariaDB Connector/J and MySQL Connector/J; see suites/README.md.

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.List;

public class Smoke {
    interface Work {
        void run() throws Exception;
    }

    static String port;
    static int failures = 0;

    static void check(String client, String name, Work work) {
        try {
            work.run();
            System.out.println("ok   " + client + " " + name);
        } catch (Throwable error) {
            failures++;
            System.out.println("FAIL " + client + " " + name + " " + error);
        }
    }

    static void equal(Object got, Object expected) {
        if (!String.valueOf(got).equals(String.valueOf(expected))) {
            throw new IllegalStateException("got " + got + ", expected " + expected);
        }
    }

    static Connection connect(String scheme, String user, String password, String options)
            throws SQLException {
        String url = "jdbc:" + scheme + "://127.0.0.1:" + port + "/smoke?" + options;
        return DriverManager.getConnection(url, user, password);
    }

    static final String[][] COLUMNS = {
        {"ti", "TINYINT", "-128"}, {"i", "INT", "-2147483648"}, {"iu", "INT UNSIGNED", "4294967295"},
        {"bi", "BIGINT", "-9223372036854775808"}, {"bu", "BIGINT UNSIGNED", "18446744073709551615"},
        {"de", "DECIMAL(65,30)",
            "-12345678901234567890123456789012345.123456789012345678901234567891"},
        {"db", "DOUBLE", "1.5"}, {"fl", "FLOAT", "-2.25"}, {"vc", "VARCHAR(50)", "h\u00e9llo"},
        {"tx", "TEXT", "te'xt\\\n"}, {"en", "ENUM('x','y')", "y"}, {"se", "SET('p','q')", "p,q"},
        {"d", "DATE", "2024-02-29"}, {"dtm", "DATETIME(6)", "2024-02-29 23:59:59.123456"},
        {"t", "TIME", "12:34:56"}, {"si", "SMALLINT", "-32768"}, {"mi", "MEDIUMINT", "8388607"},
        {"tu", "TINYINT UNSIGNED", "255"}, {"ch", "CHAR(10)", "char"}, {"lt", "LONGTEXT", ""},
        {"ts", "TIMESTAMP(6) NULL", "2000-01-01 00:00:00.000001"},
    };

    static void types(Connection connection) throws SQLException {
        StringBuilder definitions = new StringBuilder();
        StringBuilder places = new StringBuilder();
        for (String[] column : COLUMNS) {
            definitions.append(", ").append(column[0]).append(' ').append(column[1]);
            places.append(", ?");
        }
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS java_types");
            statement.execute("CREATE TABLE java_types (id INT NOT NULL PRIMARY KEY" + definitions
                + ", b LONGBLOB)");
        }
        byte[] bytes = {0, 1, -1};
        String insert = "INSERT INTO java_types VALUES (?" + places + ", ?)";
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            for (int row = 1; row <= 2; row++) {
                statement.setInt(1, row);
                for (int index = 0; index < COLUMNS.length; index++) {
                    String value = row == 1 ? COLUMNS[index][2] : null;
                    if (COLUMNS[index][0].equals("de") && value != null) {
                        statement.setBigDecimal(index + 2, new BigDecimal(value));
                    } else {
                        statement.setString(index + 2, value);
                    }
                }
                statement.setBytes(COLUMNS.length + 2, row == 1 ? bytes : null);
                statement.executeUpdate();
            }
        }
        String select = "SELECT * FROM java_types WHERE id > ? ORDER BY id";
        try (PreparedStatement statement = connection.prepareStatement(select)) {
            statement.setInt(1, 0);
            ResultSet rows = statement.executeQuery();
            rows.next();
            for (int index = 0; index < COLUMNS.length; index++) {
                String name = COLUMNS[index][0];
                String got = name.equals("de")
                    ? rows.getBigDecimal(index + 2).toPlainString() : rows.getString(index + 2);
                equal(name + " " + got, name + " " + COLUMNS[index][2]);
            }
            equal(Arrays.toString(rows.getBytes("b")), Arrays.toString(bytes));
            rows.next();
            for (String[] column : COLUMNS) {
                equal(rows.getObject(column[0]), null);
            }
            equal(rows.next(), false);
        }
    }

    static void login(String scheme, String user, String options, boolean isSecret)
            throws SQLException {
        try (Connection connection = connect(scheme, user, "pw", options);
                Statement statement = connection.createStatement()) {
            ResultSet rows = statement.executeQuery("SELECT CURRENT_USER()");
            rows.next();
            equal(rows.getString(1).split("@")[0], user);
            rows = statement.executeQuery("SHOW STATUS LIKE 'Ssl_cipher'");
            rows.next();
            equal(!rows.getString(2).isEmpty(), isSecret);
        }
    }

    static void wrongPassword(String scheme) {
        String option = "sslMode=" + (scheme.equals("mysql") ? "DISABLED" : "disable");
        try (Connection connection = connect(scheme, "native", "wrong", option)) {
            throw new IllegalStateException("a wrong password was taken");
        } catch (SQLException error) {
            equal(error.getErrorCode() + " " + error.getSQLState(), "1045 28000");
        }
    }

    static void reconnect(String scheme, String options) throws SQLException {
        try (Connection victim = connect(scheme, "root", "", options);
                Connection killer = connect(scheme, "root", "", options)) {
            ResultSet rows = victim.createStatement().executeQuery("SELECT CONNECTION_ID()");
            rows.next();
            killer.createStatement().execute("KILL " + rows.getLong(1));
            try {
                victim.createStatement().executeQuery("SELECT 1");
                throw new IllegalStateException("a killed connection answered");
            } catch (SQLException error) {
                equal(error.getSQLState() == null, false);
            }
        }
        run(scheme, options, connection -> {
            ResultSet rows = connection.createStatement().executeQuery("SELECT 1");
            rows.next();
            equal(rows.getInt(1), 1);
        });
    }

    static void errors(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS java_keyed");
            statement.execute("CREATE TABLE java_keyed (id INT NOT NULL PRIMARY KEY)");
            statement.execute("INSERT INTO java_keyed VALUES (1)");
            for (List<Object> expected : List.<List<Object>>of(
                    List.of("INSERT INTO java_keyed VALUES (1)", 1062, "23000"),
                    List.of("SELECT * FROM missing", 1146, "42S02"),
                    List.of("SELECT nothing FROM java_keyed", 1054, "42S22"),
                    List.of("SELEC 1", 1064, "42000"))) {
                try {
                    statement.execute((String) expected.get(0));
                    throw new IllegalStateException("no error: " + expected.get(0));
                } catch (SQLException error) {
                    equal(error.getErrorCode() + " " + error.getSQLState(),
                        expected.get(1) + " " + expected.get(2));
                }
            }
        }
    }

    static void transactions(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS java_moved");
            statement.execute("CREATE TABLE java_moved (id INT NOT NULL PRIMARY KEY)");
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            statement.execute("INSERT INTO java_moved VALUES (1)");
            connection.rollback();
            statement.execute("INSERT INTO java_moved VALUES (2)");
            var savepoint = connection.setSavepoint("s");
            statement.execute("INSERT INTO java_moved VALUES (3)");
            connection.rollback(savepoint);
            connection.commit();
            connection.setAutoCommit(true);
            ResultSet rows = statement.executeQuery("SELECT SUM(id), COUNT(*) FROM java_moved");
            rows.next();
            equal(rows.getInt(1) + " " + rows.getInt(2), "2 1");
        }
    }

    static void batchAndMetadata(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS java_batch");
            statement.execute("CREATE TABLE java_batch (id INT NOT NULL AUTO_INCREMENT "
                + "PRIMARY KEY, v VARCHAR(20))");
        }
        String insert = "INSERT INTO java_batch (v) VALUES (?)";
        try (PreparedStatement statement =
                connection.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS)) {
            for (int number = 0; number < 100; number++) {
                statement.setString(1, "v" + number);
                statement.addBatch();
            }
            equal(statement.executeBatch().length, 100);
        }
        ResultSet columns = connection.getMetaData().getColumns("smoke", null, "java_batch", "%");
        int count = 0;
        while (columns.next()) {
            count++;
        }
        equal(count, 2);
    }

    // With useBulkStmts these batches are one COM_STMT_BULK_EXECUTE each.
    static void bulk(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS java_bulk");
            statement.execute("CREATE TABLE java_bulk (id INT NOT NULL PRIMARY KEY, "
                + "v VARCHAR(20), d DOUBLE)");
        }
        try (PreparedStatement statement =
                connection.prepareStatement("INSERT INTO java_bulk VALUES (?, ?, ?)")) {
            for (int id = 1; id <= 1000; id++) {
                statement.setInt(1, id);
                statement.setString(2, id % 3 == 0 ? null : "v" + id);
                statement.setDouble(3, id / 4.0);
                statement.addBatch();
            }
            equal(statement.executeBatch().length, 1000);
        }
        try (PreparedStatement statement =
                connection.prepareStatement("UPDATE java_bulk SET v = ? WHERE id = ?")) {
            for (int id = 1; id <= 10; id++) {
                statement.setString(1, "new");
                statement.setInt(2, id);
                statement.addBatch();
            }
            statement.executeBatch();
        }
        try (PreparedStatement statement =
                connection.prepareStatement("INSERT INTO java_bulk VALUES (?, 'again', 0)")) {
            for (int id : new int[] {2000, 1}) {
                statement.setInt(1, id);
                statement.addBatch();
            }
            try {
                statement.executeBatch();
                throw new IllegalStateException("a duplicate was taken");
            } catch (SQLException error) {
                equal(error.getErrorCode(), 1062);
            }
        }
        try (PreparedStatement statement =
                connection.prepareStatement("DELETE FROM java_bulk WHERE id = ?")) {
            for (int id = 11; id <= 20; id++) {
                statement.setInt(1, id);
                statement.addBatch();
            }
            statement.executeBatch();
        }
        try (Statement statement = connection.createStatement()) {
            ResultSet rows = statement.executeQuery("SELECT COUNT(*), SUM(id), COUNT(v), "
                + "SUM(v = 'new'), SUM(d) FROM java_bulk WHERE id < 2000");
            rows.next();
            equal(rows.getString(1) + " " + rows.getString(2) + " " + rows.getString(3) + " "
                + rows.getString(4) + " " + rows.getString(5), "990 500345 663 10 125086.25");
        }
    }

    static void large(Connection connection) throws SQLException {
        byte[] value = new byte[17 * 1024 * 1024];
        Arrays.fill(value, (byte) 'x');
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS java_large");
            statement.execute("CREATE TABLE java_large (id INT NOT NULL PRIMARY KEY, b LONGBLOB)");
        }
        try (PreparedStatement statement =
                connection.prepareStatement("INSERT INTO java_large VALUES (1, ?)")) {
            statement.setBytes(1, value);
            statement.executeUpdate();
        }
        try (PreparedStatement statement =
                connection.prepareStatement("SELECT b FROM java_large WHERE id = 1")) {
            ResultSet rows = statement.executeQuery();
            rows.next();
            equal(Arrays.equals(rows.getBytes(1), value), true);
        }
    }

    public static void main(String[] arguments) {
        port = arguments[0];
        String methods = System.getenv().getOrDefault("SMOKE_METHODS", "");
        boolean hasTls = "1".equals(System.getenv("SMOKE_TLS"));
        for (String method : methods.split(" ")) {
            for (String scheme : List.of("mariadb", "mysql")) {
                if (method.isEmpty() || scheme.equals("mysql") && method.equals("ed25519")) {
                    continue;
                }
                String key = scheme.equals("mysql") ? "allowPublicKeyRetrieval=true" : "allowPublicKeyRetrieval";
                check(scheme, "login " + method, () -> login(scheme, method,
                    key + "&sslMode=" + (scheme.equals("mysql") ? "DISABLED" : "disable"), false));
                if (hasTls) {
                    check(scheme, "login " + method + " over TLS", () -> login(scheme, method,
                        "sslMode=" + (scheme.equals("mysql") ? "REQUIRED" : "trust"), true));
                }
            }
        }
        for (String scheme : List.of("mariadb", "mysql")) {
            check(scheme, "wrong password", () -> wrongPassword(scheme));
        }
        for (String[] mode : new String[][] {
                {"mariadb", "sslMode=disable", "text"},
                {"mariadb", "sslMode=disable&useServerPrepStmts=true", "binary"},
                {"mariadb", "sslMode=disable&useServerPrepStmts=true&useBulkStmts=true", "bulk"},
                {"mysql", "sslMode=DISABLED", "text"},
                {"mysql", "sslMode=DISABLED&useServerPrepStmts=true", "binary"},
                {"mysql", "sslMode=DISABLED&rewriteBatchedStatements=true", "rewritten"}}) {
            String client = mode[0] + " " + mode[2];
            String options = mode[1] + "&connectionTimeZone=UTC&timezone=UTC";
            check(client, "types", () -> run(mode[0], options, Smoke::types));
            check(client, "errors", () -> run(mode[0], options, Smoke::errors));
            check(client, "transactions", () -> run(mode[0], options, Smoke::transactions));
            check(client, "batch", () -> run(mode[0], options, Smoke::batchAndMetadata));
            check(client, "bulk", () -> run(mode[0], options, Smoke::bulk));
            check(client, "reconnect", () -> reconnect(mode[0], options));
            check(client, "large row", () -> run(mode[0], options, Smoke::large));
        }
        System.exit(failures > 0 ? 1 : 0);
    }

    interface OnConnection {
        void run(Connection connection) throws SQLException;
    }

    static void run(String scheme, String options, OnConnection work) throws SQLException {
        try (Connection connection = connect(scheme, "root", "", options)) {
            work.run(connection);
        }
    }
}
