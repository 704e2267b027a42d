// Smoke suite of go-sql-driver/mysql; see suites/README.md.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

var (
	port     = os.Args[1]
	failures = 0
	ctx      = context.Background()
)

func check(client, name string, work func() error) {
	if err := work(); err != nil {
		failures++
		fmt.Println("FAIL", client, name, err)
		return
	}
	fmt.Println("ok  ", client, name)
}

func dsn(user, options string) string {
	return fmt.Sprintf("%s@tcp(127.0.0.1:%s)/smoke?maxAllowedPacket=0&%s", user, port, options)
}

func login(user, options string, isSecret bool) error {
	db, err := sql.Open("mysql", dsn(user+":pw", options))
	if err != nil {
		return err
	}
	defer db.Close()
	var current string
	if err := db.QueryRow("SELECT CURRENT_USER()").Scan(&current); err != nil {
		return err
	}
	if !strings.HasPrefix(current, user+"@") {
		return fmt.Errorf("logged in as %s", current)
	}
	var name, cipher string
	if err := db.QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil {
		return err
	}
	if (cipher != "") != isSecret {
		return fmt.Errorf("the cipher is %q", cipher)
	}
	return nil
}

var columns = [][3]string{
	{"si", "SMALLINT", "-32768"}, {"mi", "MEDIUMINT", "8388607"}, {"ch", "CHAR(10)", "char"},
	{"lt", "LONGTEXT", ""}, {"vb", "VARBINARY(20)", "\x00\x01"}, {"bn", "BINARY(3)", "\x00a\xff"},
	{"bt", "BIT(8)", "\xa5"}, {"ti", "TINYINT", "-128"}, {"tu", "TINYINT UNSIGNED", "255"}, {"i", "INT", "-2147483648"},
	{"iu", "INT UNSIGNED", "4294967295"}, {"bi", "BIGINT", "-9223372036854775808"},
	{"bu", "BIGINT UNSIGNED", "18446744073709551615"},
	{"de", "DECIMAL(65,30)", "-12345678901234567890123456789012345.123456789012345678901234567891"},
	{"db", "DOUBLE", "1.5"}, {"fl", "FLOAT", "-2.25"}, {"vc", "VARCHAR(50)", "h\u00e9llo \U0001f600"},
	{"tx", "TEXT", "te'xt\\\n"}, {"bl", "BLOB", "\x00\x01\xff"}, {"en", "ENUM('x','y')", "y"},
	{"se", "SET('p','q')", "p,q"}, {"d", "DATE", "2024-02-29"},
	{"dtm", "DATETIME(6)", "2024-02-29 23:59:59.123456"},
	{"ts", "TIMESTAMP(6) NULL", "2000-01-01 00:00:00.000001"},
	{"t", "TIME(6)", "-838:01:00.000000"}, {"y", "YEAR", "2024"},
}

func types(db *sql.DB) error {
	var definitions, names, places []string
	var values, nulls []any
	for _, column := range columns {
		definitions = append(definitions, column[0]+" "+column[1])
		names = append(names, column[0])
		places = append(places, "?")
		values = append(values, []byte(column[2]))
		nulls = append(nulls, nil)
	}
	insert := "INSERT INTO go_types VALUES (?, " + strings.Join(places, ", ") + ")"
	steps := []struct {
		text   string
		values []any
	}{
		{"DROP TABLE IF EXISTS go_types", nil},
		{"CREATE TABLE go_types (id INT NOT NULL PRIMARY KEY, " + strings.Join(definitions, ", ") + ")", nil},
		{insert, append([]any{1}, values...)},
		{insert, append([]any{2}, nulls...)},
	}
	for _, step := range steps {
		if _, err := db.Exec(step.text, step.values...); err != nil {
			return fmt.Errorf("%.60s: %w", step.text, err)
		}
	}
	rows, err := db.Query("SELECT "+strings.Join(names, ", ")+" FROM go_types WHERE id > ? ORDER BY id", 0)
	if err != nil {
		return err
	}
	defer rows.Close()
	number := 0
	for ; rows.Next(); number++ {
		found := make([]sql.NullString, len(columns))
		places := make([]any, len(columns))
		for index := range found {
			places[index] = &found[index]
		}
		if err := rows.Scan(places...); err != nil {
			return err
		}
		for index, column := range columns {
			if number == 0 && found[index].String != column[2] {
				return fmt.Errorf("%s: got %q, expected %q", column[0], found[index].String, column[2])
			}
			if found[index].Valid != (number == 0) {
				return fmt.Errorf("%s: NULL is not NULL", column[0])
			}
		}
	}
	if number != 2 {
		return fmt.Errorf("%d rows, expected 2", number)
	}
	return rows.Err()
}

func serverErrors(db *sql.DB) error {
	for _, text := range []string{
		"DROP TABLE IF EXISTS go_keyed", "CREATE TABLE go_keyed (id INT NOT NULL PRIMARY KEY)",
		"INSERT INTO go_keyed VALUES (1)",
	} {
		if _, err := db.Exec(text); err != nil {
			return err
		}
	}
	for _, expected := range []struct {
		text   string
		number uint16
		state  string
	}{
		{"INSERT INTO go_keyed VALUES (1)", 1062, "23000"},
		{"INSERT INTO missing VALUES (1)", 1146, "42S02"},
		{"SELEC 1", 1064, "42000"},
		{"UPDATE go_keyed SET nothing = 1", 1054, "42S22"},
	} {
		_, err := db.Exec(expected.text)
		var found *mysql.MySQLError
		if !errors.As(err, &found) {
			return fmt.Errorf("%s: %v", expected.text, err)
		}
		if found.Number != expected.number || string(found.SQLState[:]) != expected.state {
			return fmt.Errorf("%s: %v", expected.text, found)
		}
	}
	return nil
}

func transactions(db *sql.DB) error {
	for _, text := range []string{
		"DROP TABLE IF EXISTS go_moved", "CREATE TABLE go_moved (id INT NOT NULL PRIMARY KEY)",
	} {
		if _, err := db.Exec(text); err != nil {
			return err
		}
	}
	for _, keep := range []bool{false, true} {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return err
		}
		for _, text := range []string{
			"INSERT INTO go_moved VALUES (1)", "SAVEPOINT s", "INSERT INTO go_moved VALUES (2)",
			"ROLLBACK TO SAVEPOINT s",
		} {
			if _, err := tx.Exec(text); err != nil {
				return err
			}
		}
		end := tx.Rollback
		if keep {
			end = tx.Commit
		}
		if err := end(); err != nil {
			return err
		}
		var count int
		if err := db.QueryRow("SELECT COUNT(*) FROM go_moved").Scan(&count); err != nil {
			return err
		}
		if (count == 1) != keep {
			return fmt.Errorf("%d rows, kept: %v", count, keep)
		}
	}
	return nil
}

func large(db *sql.DB) error {
	value := bytes.Repeat([]byte("0123456789abcdef"), 17*1024*1024/16)
	for _, text := range []string{
		"DROP TABLE IF EXISTS go_large", "CREATE TABLE go_large (id INT NOT NULL PRIMARY KEY, b LONGBLOB)",
	} {
		if _, err := db.Exec(text); err != nil {
			return err
		}
	}
	if _, err := db.Exec("INSERT INTO go_large VALUES (?, ?)", 1, value); err != nil {
		return err
	}
	var found []byte
	if err := db.QueryRow("SELECT b FROM go_large WHERE id = ?", 1).Scan(&found); err != nil {
		return err
	}
	if !bytes.Equal(found, value) {
		return fmt.Errorf("17 MiB came back changed")
	}
	return nil
}

func reconnect(db *sql.DB) error {
	victim, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	var id int64
	if err := victim.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		return err
	}
	if _, err := db.Exec(fmt.Sprintf("KILL %d", id)); err != nil {
		return err
	}
	var one int
	if err := victim.QueryRowContext(ctx, "SELECT 1").Scan(&one); err == nil {
		return fmt.Errorf("a killed connection answered")
	}
	victim.Close()
	// The pool may hold the victim yet; whether it finds out in time is a race.
	db.SetMaxIdleConns(0)
	return db.QueryRow("SELECT 1").Scan(&one)
}

func main() {
	for _, method := range strings.Fields(os.Getenv("SMOKE_METHODS")) {
		check("go", "login "+method, func() error { return login(method, "tls=false", false) })
		if os.Getenv("SMOKE_TLS") == "1" {
			check("go", "login "+method+" over TLS", func() error { return login(method, "tls=skip-verify", true) })
		}
	}
	for name, options := range map[string]string{
		"go binary": "tls=false", "go text": "interpolateParams=true", "go compressed": "compress=true",
	} {
		db, err := sql.Open("mysql", dsn("root", options))
		if err != nil {
			panic(err)
		}
		check(name, "types", func() error { return types(db) })
		check(name, "errors", func() error { return serverErrors(db) })
		check(name, "transactions", func() error { return transactions(db) })
		check(name, "large row", func() error { return large(db) })
		check(name, "reconnect", func() error { return reconnect(db) })
		db.Close()
	}
	if failures > 0 {
		os.Exit(1)
	}
}
