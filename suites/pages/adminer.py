"""Walks Adminer: databases, tables, structure, indexes, rows, SQL, export, users, server's state.

Arguments: the site's address and the database's port.
"""

import re
import socket
import sys
import urllib.parse

from browser import Browser

TEXT = "h\u00e9llo \U0001f600 'q' \"d\" b\\s 100%"

# Accounts and databases that only one of the servers brings along, and the rest of their rows.
BROUGHT_ALONG = re.compile(
    r"^(root|mariadb\.sys|127\.0\.0\.1|::1|localhost|Edit|information_schema|mysql"
    r"|performance_schema|sys|latin1_swedish_ci|utf8mb\w+_general_ci|\?)$")

# Variables that both servers have, with one value in both.
VARIABLES = {
    "autocommit", "auto_increment_increment", "auto_increment_offset", "character_set_client",
    "character_set_connection", "character_set_results", "collation_connection",
    "default_week_format", "div_precision_increment", "group_concat_max_len",
    "lower_case_table_names", "sql_mode", "sql_notes", "sql_safe_updates", "sql_warnings",
    "storage_engine", "tx_isolation", "tx_read_only", "version_comment",
}
STATUS = {"Handler_rollback", "Threads_connected"}


class Walk(Browser):
    """Leaves out lists of what the server brings along, which the two do not share."""

    def show(self, name, page, keep=None):
        page.lines = [line for line in page.lines if is_shared(line)]
        return super().show(name, page, keep)


def is_shared(line):
    """Not a list of all databases, collations or engines, nor what OPTIMIZE says of itself."""
    return not re.search(
        r"^\((\w* \| )?information_schema \| |^\(\(collation\) \| |^\(\(engine\) \| "
        r"|Table does not support optimize, doing recreate", line)


class Adminer:
    """The pages of one login."""

    def __init__(self, browser, user, password):
        self.browser = browser
        self.base = {"server": f"127.0.0.1:{browser.port}", "username": user}
        page = browser.fetch("/")
        self.start = browser.submit(page, "auth[username]", {
            "auth[driver]": "server", "auth[server]": self.base["server"],
            "auth[username]": user, "auth[password]": password, "auth[db]": ""})

    def url(self, **query):
        return "/?" + urllib.parse.urlencode({**self.base, **query})

    def get(self, **query):
        return self.browser.fetch(self.url(**query))

    def show(self, title, keep=None, **query):
        return self.browser.show(title, self.get(**query), keep)

    def sql(self, name, database, text):
        page = self.get(db=database, sql="")
        return self.browser.show(name, self.browser.submit(page, "query", {"query": text}))


def create(adminer):
    """A database and tables, by Adminer's own forms."""
    browser = adminer.browser
    page = adminer.get(database="")
    browser.show("new database", browser.submit(page, "name", {
        "name": "shop", "collation": "utf8mb4_general_ci"}, "save"))
    page = adminer.get(db="shop", create="")
    fields = {"name": "customer", "Engine": "InnoDB", "Collation": "utf8mb4_unicode_ci",
              "Comment": "who buys", "auto_increment_col": "1"}
    columns = [("id", "int", "", ""), ("name", "varchar", "60", ""),
               ("mail", "varchar", "100", "1"), ("since", "date", "", "1"),
               ("kind", "enum", "'new','old'", "1"),
               ("worth", "decimal", "10,2", "1"), ("note", "text", "", "1")]
    for index, (name, kind, length, null) in enumerate(columns, 1):
        fields.update({
            f"fields[{index}][field]": name, f"fields[{index}][orig]": "",
            f"fields[{index}][type]": kind, f"fields[{index}][length]": length,
            f"fields[{index}][comment]": f"the {name}", f"fields[{index}][collation]": "",
            f"fields[{index}][unsigned]": "", f"fields[{index}][default]": "",
        })
        if null:
            fields[f"fields[{index}][null]"] = null
    browser.show("new table", browser.submit(page, "fields[1][field]", fields, "save"))
    page = adminer.get(db="shop", indexes="customer")
    browser.show("indexes, to edit", page)
    browser.show("new indexes", browser.submit(page, "indexes[1][type]", {
        "indexes[2][type]": "UNIQUE", "indexes[2][columns][1]": "mail",
        "indexes[2][lengths][1]": "50", "indexes[2][name]": "by_mail",
        "indexes[3][type]": "INDEX", "indexes[3][columns][1]": "name",
        "indexes[3][columns][2]": "since", "indexes[3][lengths][1]": "",
        "indexes[3][lengths][2]": "", "indexes[3][name]": ""}, "drop_col[x]"))
    browser.show("indexes saved", browser.submit(page, "indexes[1][type]", {
        "indexes[2][type]": "UNIQUE", "indexes[2][columns][1]": "mail",
        "indexes[2][lengths][1]": "50", "indexes[2][name]": "by_mail",
        "indexes[3][type]": "INDEX", "indexes[3][columns][1]": "name",
        "indexes[3][columns][2]": "since", "indexes[3][lengths][1]": "",
        "indexes[3][lengths][2]": "", "indexes[3][name]": ""}))
    adminer.show("structure", db="shop", table="customer")
    page = adminer.get(db="shop", create="customer")
    browser.show("table, to alter", page)
    browser.show("altered", browser.submit(page, "fields[2][field]", {
        "fields[2][field]": "full_name", "fields[2][length]": "80",
        "fields[4][has_default]": "1", "fields[4][default]": "2024-01-01",
        "Comment": "who bought"}))
    adminer.show("structure altered", db="shop", table="customer")


def edit_rows(adminer):
    browser = adminer.browser
    for number in range(1, 5):
        page = adminer.get(db="shop", edit="customer")
        if number == 1:
            browser.show("new row", page)
        browser.show(f"row {number}", browser.submit(page, "fields[full_name]", {
            "fields[full_name]": f"Name {number} {TEXT}", "fields[mail]": f"m{number}@example.org",
            "fields[since]": f"2024-01-0{number}", "fields[kind]": "2", "function[kind]": "",
            "fields[worth]": f"{number}.25", "fields[note]": TEXT,
            "function[note]": ""}, "insert"))
    page = adminer.get(**{"db": "shop", "edit": "customer", "where[id]": "2"})
    browser.show("row, to edit", page)
    browser.show("row edited", browser.submit(page, "fields[full_name]", {
        "fields[full_name]": "Edited " + TEXT, "fields[worth]": "99.90"}, "edit"))
    page = adminer.get(**{"db": "shop", "edit": "customer", "where[id]": "3"})
    browser.show("row twice", browser.submit(page, "fields[full_name]", {
        "fields[mail]": "m1@example.org"}, "edit"))
    page = adminer.get(**{"db": "shop", "edit": "customer", "where[id]": "4"})
    browser.show("row deleted", browser.submit(page, "fields[full_name]", {}, "delete"))
    adminer.show("rows", db="shop", select="customer")
    adminer.show("rows searched", **{
        "db": "shop", "select": "customer", "where[0][col]": "full_name", "where[0][op]": "LIKE %%",
        "where[0][val]": "Edited", "order[0]": "since", "desc[0]": "1", "limit": "2"})
    adminer.show("rows anywhere", **{
        "db": "shop", "select": "customer", "where[0][col]": "", "where[0][op]": "LIKE %%",
        "where[0][val]": "99"})
    adminer.show("rows summed", **{
        "db": "shop", "select": "customer", "columns[0][fun]": "sum", "columns[0][col]": "worth",
        "columns[1][fun]": "", "columns[1][col]": "kind"})
    page = adminer.get(db="shop", select="customer")
    browser.show("searched in all tables", browser.submit(
        adminer.get(db="shop"), "query", {"query": "99", "op": "LIKE %%"}, "search"))


STATEMENTS = """
CREATE TABLE sold (id INT PRIMARY KEY AUTO_INCREMENT, customer INT, at DATETIME(3) NOT NULL,
  amount DECIMAL(12,4) UNSIGNED DEFAULT 1.5, flags SET('a','b','c'), raw VARBINARY(20), y YEAR,
  f FLOAT, d DOUBLE, b BIT(5), j JSON, t TIME(2), big BIGINT UNSIGNED ZEROFILL,
  ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  KEY (customer, at), UNIQUE KEY amounts (amount, id)) COMMENT='what was sold' AUTO_INCREMENT=7;
INSERT INTO sold (customer, at, flags, raw, y, f, d, b, j, t, big) VALUES
  (1, '2024-05-06 07:08:09.123', 'a,c', x'00ff41', 1999, 1.5, -2.25e-5, b'10101', '{"a": 1}',
   '-12:34:56.78', 42), (2, '2024-01-01', '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT * FROM sold;
SELECT UPPER(full_name) AS name, worth * 2 FROM customer WHERE id = 1;
SELECT * FROM nothing;
UPDATE sold SET amount = amount * 2 WHERE id = 7;
DELIMITER //
CREATE PROCEDURE twice(IN x INT, OUT y INT) BEGIN SET y = x * 2; SELECT x, y; END//
CREATE FUNCTION thrice(x INT) RETURNS INT DETERMINISTIC RETURN x * 3//
DELIMITER ;
CALL twice(21, @y);
SELECT @y, thrice(7);
SHOW TABLES;
SHOW WARNINGS;
ANALYZE TABLE sold;
SHOW INDEX FROM sold;
SHOW CREATE TABLE sold;
SELEC 1;
"""


def use_sql(adminer):
    adminer.sql("sql", "shop", STATEMENTS)
    adminer.show("database", db="shop")
    adminer.show("structure of sold", db="shop", table="sold")
    adminer.show("rows of sold", db="shop", select="sold")
    adminer.show("row of sold, to edit", **{"db": "shop", "edit": "sold", "where[id]": "7"})
    adminer.show("schema", db="shop", schema="")
    adminer.show("procedure", db="shop", procedure="twice", name="twice")
    adminer.show("function", db="shop", function="thrice", name="thrice")
    page = adminer.get(db="shop", call="twice", name="twice")
    browser = adminer.browser
    browser.show("to call", page)
    browser.show("called", browser.submit(page, "fields[x]", {"fields[x]": "4"}))


def export(adminer):
    browser = adminer.browser
    for name, style in (("sql", "DROP+CREATE"), ("csv", "")):
        page = adminer.get(db="shop", dump="")
        # Several tables as CSV would be an archive, which has a time in it.
        tables = ["customer", "sold"] if name == "sql" else ["sold"]
        browser.show(f"exported as {name}", browser.submit(page, "output", {
            "output": "text", "format": name, "db_style": style, "table_style": style,
            "routines": "1", "events": None, "triggers": None, "data_style": "INSERT",
            "tables[]": tables, "data[]": tables}))


def look_at_server(adminer):
    browser = adminer.browser
    adminer.show("databases", is_of_the_walk)
    adminer.show("users", is_of_the_walk, privileges="")
    page = adminer.get(user="")
    browser.show("user, to make", page)
    browser.show("user made", browser.submit(page, "user", {
        "host": "%", "user": "clerk", "pass": "pw", "hashed": None,
        "objects[0]": "*.*", "objects[1]": "shop.*", "grants[1][SELECT]": "1",
        "grants[1][INSERT]": "1"}), is_of_the_walk)
    adminer.show("user", user="clerk", host="%")
    page = adminer.get(user="clerk", host="%")
    browser.show("user changed", browser.submit(page, "user", {
        "objects[1]": "shop.*", "grants[1][INSERT]": None, "grants[1][DELETE]": "1"}),
        is_of_the_walk)
    adminer.show("user again", user="clerk", host="%")
    clerk = Adminer(Walk(browser.site, browser.port), "clerk", "pw")
    browser.show("the clerk", clerk.start)
    clerk.show("the clerk's tables", db="shop")
    clerk.sql("the clerk may not", "shop",
              "DROP TABLE sold; DELETE FROM sold WHERE id = 8; SELECT 1")
    page = adminer.get(user="clerk", host="%")
    browser.show("user dropped", browser.submit(page, "user", {}, "drop"), is_of_the_walk)
    adminer.show("processes", is_column, processlist="")
    adminer.show("variables", is_one_of(VARIABLES), variables="")
    adminer.show("status", is_one_of(STATUS), status="")


def is_of_the_walk(line):
    """Neither an account or database that the server brings along, nor the machine's name."""
    return not BROUGHT_ALONG.search(line) and line != socket.gethostname()


def is_column(line):
    """The process list's numbers and states are those of the moment."""
    return not re.search(r"\d|^starting$", line)


def is_one_of(names):
    return lambda line: line.split(" ")[0] in names


def drop(adminer):
    browser = adminer.browser
    page = adminer.get(db="shop")
    for button in ("optimize", "analyze", "check", "repair"):
        browser.show(button, browser.submit(page, "tables[]", {
            "tables[]": ["customer", "sold"]}, button))
    browser.show("copied", browser.submit(adminer.get(db="shop"), "tables[]", {
        "tables[]": ["customer"]}, "copy"))
    browser.show("emptied", browser.submit(adminer.get(db="shop"), "tables[]", {
        "tables[]": ["sold"]}, "truncate"))
    browser.show("tables dropped", browser.submit(adminer.get(db="shop"), "tables[]", {
        "tables[]": ["customer", "sold"]}, "drop"))
    page = adminer.get()
    browser.show("database dropped", browser.submit(page, "db[]", {"db[]": ["shop"]}, "drop"),
                 is_of_the_walk)


def main():
    browser = Walk(sys.argv[1], int(sys.argv[2]))
    wrong = Adminer(Walk(browser.site, browser.port), "pages", "wrong")
    browser.show("wrong password", wrong.start)
    adminer = Adminer(browser, "pages", "pw")
    browser.show("logged in", adminer.start, is_of_the_walk)
    create(adminer)
    edit_rows(adminer)
    use_sql(adminer)
    export(adminer)
    look_at_server(adminer)
    drop(adminer)


main()
