//! The twelve consistency conditions of TPC-C (clauses 3.3.2.1 to 3.3.2.12 of the standard, 5.11)
//! as queries that any server runs, independent of the client's own checks.
//!
//! A query returns what contradicts its condition. Most are ledgers: a sum over all that must
//! cancel out. So no query joins large derived tables, which some servers do slowly.
//!
//! Condition 11 holds as written before any order is delivered. Customers count deliveries. The
//! query adds these, and so holds at all times.

use anyhow::{Result, ensure};
use env::Clock as _;
use env::linux::SystemClock;
use testkit::Client;

/// A condition.
#[derive(Debug)]
struct Condition {
    /// The last number of its clause.
    number: u32,
    says: &'static str,
    /// Returns the keys of what contradicts it.
    query: &'static str,
}

/// Contradictions of a condition that are shown.
const SHOWN_MAX: usize = 3;

const CONDITIONS: [Condition; 12] = [
    Condition {
        number: 1,
        says: "W_YTD = sum(D_YTD)",
        query: "SELECT w, SUM(x) FROM (SELECT w_id AS w, w_ytd AS x FROM warehouse \
                UNION ALL SELECT d_w_id, -d_ytd FROM district) AS ledger \
                GROUP BY w HAVING SUM(x) <> 0",
    },
    Condition {
        number: 2,
        says: "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        query: "SELECT d_w_id, d_id, d_next_o_id FROM district WHERE NOT d_next_o_id - 1 <=> \
                (SELECT MAX(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) \
                OR d_next_o_id - 1 <> (SELECT COALESCE(MAX(no_o_id), d_next_o_id - 1) \
                FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id)",
    },
    Condition {
        number: 3,
        says: "max(NO_O_ID) - min(NO_O_ID) + 1 = number of rows in NEW-ORDER",
        query: "SELECT no_w_id, no_d_id, COUNT(*) FROM new_order GROUP BY no_w_id, no_d_id \
                HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)",
    },
    Condition {
        number: 4,
        says: "sum(O_OL_CNT) = number of rows in ORDER-LINE",
        query: "SELECT w, d, SUM(x) FROM (SELECT o_w_id AS w, o_d_id AS d, o_ol_cnt AS x \
                FROM orders UNION ALL SELECT ol_w_id, ol_d_id, -COUNT(*) FROM order_line \
                GROUP BY ol_w_id, ol_d_id) AS ledger GROUP BY w, d HAVING SUM(x) <> 0",
    },
    Condition {
        number: 5,
        says: "O_CARRIER_ID is null if and only if the order is in NEW-ORDER",
        query: "SELECT w, d, o, SUM(x) FROM (SELECT o_w_id AS w, o_d_id AS d, o_id AS o, 1 AS x \
                FROM orders WHERE o_carrier_id IS NULL UNION ALL \
                SELECT no_w_id, no_d_id, no_o_id, -1 FROM new_order) AS ledger \
                GROUP BY w, d, o HAVING SUM(x) <> 0",
    },
    Condition {
        number: 6,
        says: "O_OL_CNT = number of rows in ORDER-LINE of the order",
        query: "SELECT o_w_id, o_d_id, o_id, o_ol_cnt FROM orders WHERE o_ol_cnt <> \
                (SELECT COUNT(*) FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id \
                AND ol_o_id = o_id)",
    },
    Condition {
        number: 7,
        says: "OL_DELIVERY_D is null if and only if O_CARRIER_ID is",
        query: "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number FROM orders JOIN order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    },
    Condition {
        number: 8,
        says: "W_YTD = sum(H_AMOUNT) of the warehouse",
        query: "SELECT w, SUM(x) FROM (SELECT w_id AS w, w_ytd AS x FROM warehouse \
                UNION ALL SELECT h_w_id, -h_amount FROM history) AS ledger \
                GROUP BY w HAVING SUM(x) <> 0",
    },
    Condition {
        number: 9,
        says: "D_YTD = sum(H_AMOUNT) of the district",
        query: "SELECT w, d, SUM(x) FROM (SELECT d_w_id AS w, d_id AS d, d_ytd AS x \
                FROM district UNION ALL SELECT h_w_id, h_d_id, -h_amount FROM history) AS ledger \
                GROUP BY w, d HAVING SUM(x) <> 0",
    },
    Condition {
        number: 10,
        says: "C_BALANCE = sum(OL_AMOUNT) of delivered orders - sum(H_AMOUNT)",
        query: "SELECT w, d, c, SUM(x) FROM (SELECT c_w_id AS w, c_d_id AS d, c_id AS c, \
                c_balance AS x FROM customer \
                UNION ALL SELECT h_c_w_id, h_c_d_id, h_c_id, h_amount FROM history \
                UNION ALL SELECT o_w_id, o_d_id, o_c_id, -ol_amount FROM orders JOIN order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE ol_delivery_d IS NOT NULL) AS ledger \
                GROUP BY w, d, c HAVING SUM(x) <> 0",
    },
    Condition {
        number: 11,
        says: "rows in ORDER - rows in NEW-ORDER = 2100 + deliveries",
        query: "SELECT w, d, SUM(x) FROM (SELECT d_w_id AS w, d_id AS d, -2100 AS x \
                FROM district UNION ALL SELECT o_w_id, o_d_id, COUNT(*) FROM orders \
                GROUP BY o_w_id, o_d_id UNION ALL SELECT no_w_id, no_d_id, -COUNT(*) \
                FROM new_order GROUP BY no_w_id, no_d_id UNION ALL \
                SELECT c_w_id, c_d_id, -c_delivery_cnt FROM customer) AS ledger \
                GROUP BY w, d HAVING SUM(x) <> 0",
    },
    Condition {
        number: 12,
        says: "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) of delivered orders",
        query: "SELECT w, d, c, SUM(x) FROM (SELECT c_w_id AS w, c_d_id AS d, c_id AS c, \
                c_balance + c_ytd_payment AS x FROM customer \
                UNION ALL SELECT o_w_id, o_d_id, o_c_id, -ol_amount FROM orders JOIN order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE ol_delivery_d IS NOT NULL) AS ledger \
                GROUP BY w, d, c HAVING SUM(x) <> 0",
    },
];

/// A condition that does not hold, and the keys of what contradicts it.
#[derive(Debug)]
struct Contradiction {
    condition: &'static Condition,
    count: usize,
    shown: Vec<String>,
}

/// Checks all conditions in the session's database; returns how many seconds it took. `moment` says
/// after what, for the error.
pub(crate) fn check(client: &mut Client, moment: &str) -> Result<f64> {
    let begun_at = SystemClock.now();
    let contradictions = contradictions(client)?;
    let told: Vec<String> = contradictions.iter().map(Contradiction::text).collect();
    ensure!(told.is_empty(), "{moment}: {}", told.join("; "));
    Ok(SystemClock.now().since(begun_at).as_secs_f64())
}

fn contradictions(client: &mut Client) -> Result<Vec<Contradiction>> {
    let mut found = Vec::new();
    for condition in &CONDITIONS {
        let rows = client.rows(condition.query)?;
        if rows.is_empty() {
            continue;
        }
        let shown = rows.iter().take(SHOWN_MAX).map(|row| {
            let values = row.iter().map(|value| match value {
                Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                None => String::from("NULL"),
            });
            values.collect::<Vec<_>>().join(" ")
        });
        found.push(Contradiction {
            condition,
            count: rows.len(),
            shown: shown.collect(),
        });
    }
    Ok(found)
}

impl Contradiction {
    fn text(&self) -> String {
        format!(
            "condition 3.3.2.{} ({}) does not hold in {} places, as ({})",
            self.condition.number,
            self.condition.says,
            self.count,
            self.shown.join("), (")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::server::plateau_program;
    use testkit::{Launch, Server, ServerKind};

    /// The columns that conditions read, named and typed as `go-tpc` makes them.
    const TABLES: [&str; 7] = [
        "CREATE TABLE warehouse (w_id INT PRIMARY KEY, w_ytd DECIMAL(12, 2))",
        "CREATE TABLE district (d_w_id INT, d_id INT, d_ytd DECIMAL(12, 2), d_next_o_id INT, \
         PRIMARY KEY (d_w_id, d_id))",
        "CREATE TABLE customer (c_w_id INT, c_d_id INT, c_id INT, c_balance DECIMAL(12, 2), \
         c_ytd_payment DECIMAL(12, 2), c_delivery_cnt INT, PRIMARY KEY (c_w_id, c_d_id, c_id))",
        "CREATE TABLE history (h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, \
         h_amount DECIMAL(6, 2))",
        "CREATE TABLE new_order (no_w_id INT, no_d_id INT, no_o_id INT, \
         PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
        "CREATE TABLE orders (o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_carrier_id INT, \
         o_ol_cnt INT, PRIMARY KEY (o_w_id, o_d_id, o_id))",
        "CREATE TABLE order_line (ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, \
         ol_delivery_d DATETIME, ol_amount DECIMAL(6, 2), \
         PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    ];

    /// A change, and the conditions that it contradicts.
    const PLANTED: [(&str, &[u32]); 16] = [
        ("UPDATE warehouse SET w_ytd = w_ytd + 0.01", &[1, 8]),
        (
            "UPDATE district SET d_ytd = d_ytd - 0.01 WHERE d_id = 2",
            &[1, 9],
        ),
        (
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 1",
            &[2],
        ),
        ("DELETE FROM new_order WHERE no_o_id = 12", &[2, 5, 11]),
        ("INSERT INTO new_order VALUES (1, 2, 5)", &[3, 5, 11]),
        ("DELETE FROM new_order", &[5, 11]),
        ("DELETE FROM order_line WHERE ol_o_id = 7", &[4, 6]),
        (
            "UPDATE orders SET o_carrier_id = 1 WHERE o_id = 11",
            &[5, 7],
        ),
        (
            "UPDATE orders SET o_ol_cnt = o_id - 7 WHERE o_id IN (7, 9)",
            &[6],
        ),
        (
            "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_o_id = 9",
            &[7],
        ),
        (
            "UPDATE history SET h_amount = h_amount + 0.01 WHERE h_d_id = 1",
            &[8, 9, 10],
        ),
        ("UPDATE history SET h_d_id = 2", &[9]),
        ("UPDATE customer SET c_balance = c_balance + 1", &[10, 12]),
        (
            "UPDATE customer SET c_ytd_payment = c_ytd_payment - 0.01",
            &[12],
        ),
        ("UPDATE customer SET c_delivery_cnt = 1", &[11]),
        ("DELETE FROM orders WHERE o_id = 8", &[4, 11]),
    ];

    /// A warehouse of two districts. Each has 12 orders of which two are new, all of one customer
    /// who has paid 10 once. A real district begins with 2,090 orders more; here the customer's
    /// deliveries make up for these.
    fn fill(client: &mut Client) -> Result<()> {
        client.run("CREATE DATABASE tpcc")?;
        client.run("USE tpcc")?;
        for table in TABLES {
            client.run(table)?;
        }
        let (mut orders, mut lines) = (Vec::new(), Vec::new());
        for district in 1..=2 {
            for order in 1..=12 {
                let (carrier, delivered) = match order {
                    ..=10 => ("1", "'2026-01-01'"),
                    _ => ("NULL", "NULL"),
                };
                orders.push(format!("(1, {district}, {order}, 1, {carrier}, 1)"));
                lines.push(format!("(1, {district}, {order}, 1, {delivered}, 0)"));
            }
        }
        for statement in [
            "INSERT INTO warehouse VALUES (1, 20)",
            "INSERT INTO district VALUES (1, 1, 10, 13), (1, 2, 10, 13)",
            "INSERT INTO customer VALUES (1, 1, 1, -10, 10, -2090), (1, 2, 1, -10, 10, -2090)",
            "INSERT INTO history VALUES (1, 1, 1, 1, 1, 10), (1, 2, 1, 2, 1, 10)",
            "INSERT INTO new_order VALUES (1, 1, 11), (1, 1, 12), (1, 2, 11), (1, 2, 12)",
            &format!("INSERT INTO orders VALUES {}", orders.join(", ")),
            &format!("INSERT INTO order_line VALUES {}", lines.join(", ")),
        ] {
            client.run(statement)?;
        }
        Ok(())
    }

    fn each_planted_contradiction_is_found_on(server: &Server) -> Result<()> {
        let mut client = server.connect()?;
        fill(&mut client)?;
        check(&mut client, "after the load")?;
        for (change, expected) in PLANTED {
            client.run("BEGIN")?;
            let done = client.run(change)?;
            ensure!(0 < done.affected_rows, "{change} changes nothing");
            let found: Vec<u32> = contradictions(&mut client)?
                .iter()
                .map(|it| it.condition.number)
                .collect();
            ensure!(found == expected, "{change}: {found:?}, not {expected:?}");
            client.run("ROLLBACK")?;
        }
        client.run("DELETE FROM warehouse")?;
        let error = check(&mut client, "after the change").expect_err("it is refused");
        let told = "after the change: condition 3.3.2.1 (W_YTD = sum(D_YTD)) does not hold in 1 \
                    places, as (1 -20.00)";
        ensure!(error.to_string().starts_with(told), "{error}");
        Ok(())
    }

    #[test]
    fn each_planted_contradiction_is_found() {
        let planted = PLANTED.iter().flat_map(|it| it.1);
        let numbers: std::collections::BTreeSet<u32> = planted.copied().collect();
        assert!(
            numbers
                .into_iter()
                .eq(CONDITIONS.iter().map(|it| it.number))
        );
        let mut kinds = vec![ServerKind::MariaDb];
        // It is built where all packages are tested.
        kinds.extend(plateau_program().is_ok().then_some(ServerKind::Plateau));
        for kind in kinds {
            let server = Launch::new(kind).start().unwrap();
            each_planted_contradiction_is_found_on(&server).unwrap();
        }
    }
}
