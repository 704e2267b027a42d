//! The five transactions of TPC-C (standard 5.11, clause 2) over the tables that `go-tpc` loads.
//!
//! A terminal of the standard reads the number of an order, or a customer found by name, and sends
//! it in later statements. Here such values stay in variables of the session: `SELECT .. INTO @o`.
//! So all statements of a transaction are drawn when it begins, and no reply is decoded. A client
//! costs the load a receive and a send for each statement, as in the other mixes. `go-tpc` takes
//! half of two cores at 2,048 clients, and more with each client.
//!
//! Other differences from the standard: each order has ten lines, its mean. The first customer of a
//! name is taken, not the middle one. Amounts and bad credit are drawn, and not read. An order that
//! is rolled back has done all its work before. There are no times for keying and thinking. The
//! twelve conditions of the standard hold nevertheless.

use super::draw::Draw;
use super::mix::Value;

/// Lines of an order.
const LINES: u64 = 10;
const DISTRICTS: u64 = 10;
const CUSTOMERS: u64 = 3000;
const ITEMS: u64 = 100_000;

/// A name of a customer is made of three of them.
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// Statements of the mean transaction: 20, 10, 6, 72 and 4 by their shares.
pub(super) const MEAN_STEPS: f64 = 16.58;

/// A statement, numbered by its place in [`STATEMENTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Statement {
    Begin,
    Commit,
    Rollback,
    Buyer,
    TakeNumber,
    NextNumber,
    Order,
    NewOrder,
    Items,
    Stocks,
    Stock,
    Lines,
    PayWarehouse,
    Warehouse,
    PayDistrict,
    District,
    ByName,
    ByNumber,
    LockCustomer,
    Pay,
    PayBadCredit,
    History,
    Customer,
    LastOrder,
    OrderLines,
    Oldest,
    Delivered,
    Carrier,
    Receiver,
    LinesDelivered,
    Amount,
    Balance,
    Horizon,
    LowStock,
}

use Statement as S;

/// All statements with their texts, in order. A `#` stands for ten of [`REPEATED`].
const STATEMENTS: [(Statement, &str); 34] = [
    (S::Begin, "BEGIN"),
    (S::Commit, "COMMIT"),
    (S::Rollback, "ROLLBACK"),
    (
        S::Buyer,
        "SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON \
         w_id = c_w_id WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    ),
    (
        S::TakeNumber,
        "SELECT d_next_o_id, d_tax INTO @o, @tax FROM district WHERE d_w_id = ? AND \
         d_id = ? FOR UPDATE",
    ),
    (
        S::NextNumber,
        "UPDATE district SET d_next_o_id = @o + 1 WHERE d_w_id = ? AND d_id = ?",
    ),
    (
        S::Order,
        "INSERT INTO orders (o_id, o_w_id, o_d_id, o_c_id, o_entry_d, o_ol_cnt, \
         o_all_local) VALUES (@o, ?, ?, ?, NOW(), ?, ?)",
    ),
    (
        S::NewOrder,
        "INSERT INTO new_order (no_o_id, no_w_id, no_d_id) VALUES (@o, ?, ?)",
    ),
    (
        S::Items,
        "SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN (#)",
    ),
    (
        S::Stocks,
        "SELECT s_w_id, s_i_id, s_quantity, s_data, s_dist_01 FROM stock WHERE \
         (s_w_id, s_i_id) IN (#) FOR UPDATE",
    ),
    (
        S::Stock,
        "UPDATE stock SET s_quantity = IF(s_quantity < ? + 10, s_quantity + 91 - ?, \
         s_quantity - ?), s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
         s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
    ),
    (
        S::Lines,
        "INSERT INTO order_line (ol_o_id, ol_w_id, ol_d_id, ol_number, ol_i_id, \
         ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES #",
    ),
    (
        S::PayWarehouse,
        "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
    ),
    (
        S::Warehouse,
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse \
         WHERE w_id = ?",
    ),
    (
        S::PayDistrict,
        "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
    ),
    (
        S::District,
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
         WHERE d_w_id = ? AND d_id = ?",
    ),
    (
        S::ByName,
        "SELECT c_id INTO @c FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last \
         = ? ORDER BY c_first LIMIT 1",
    ),
    (
        S::ByNumber,
        "SELECT c_id INTO @c FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    ),
    (
        S::LockCustomer,
        "SELECT c_first, c_middle, c_last, c_street_1, c_city, c_state, c_zip, \
         c_phone, c_credit, c_credit_lim, c_discount, c_balance, c_since FROM customer \
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = @c FOR UPDATE",
    ),
    (
        S::Pay,
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment \
         + ?, c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND \
         c_id = @c",
    ),
    (
        S::PayBadCredit,
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment \
         + ?, c_payment_cnt = c_payment_cnt + 1, c_data = LEFT(CONCAT_WS(' ', c_id, \
         c_d_id, c_w_id, c_data), 500) WHERE c_w_id = ? AND c_d_id = ? AND c_id = @c",
    ),
    (
        S::History,
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, \
         h_amount, h_data) VALUES (@c, ?, ?, ?, ?, NOW(), ?, 'a payment')",
    ),
    (
        S::Customer,
        "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? \
         AND c_d_id = ? AND c_id = @c",
    ),
    (
        S::LastOrder,
        "SELECT o_id, o_entry_d INTO @o, @entry FROM orders WHERE o_w_id = ? AND \
         o_d_id = ? AND o_c_id = @c ORDER BY o_id DESC LIMIT 1",
    ),
    (
        S::OrderLines,
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM \
         order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = @o",
    ),
    (
        S::Oldest,
        "SELECT MIN(no_o_id) INTO @o FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
         FOR UPDATE",
    ),
    (
        S::Delivered,
        "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = @o",
    ),
    (
        S::Carrier,
        "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = \
         @o",
    ),
    (
        S::Receiver,
        "SELECT MAX(o_c_id) INTO @c FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = \
         @o",
    ),
    (
        S::LinesDelivered,
        "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? \
         AND ol_o_id = @o",
    ),
    (
        S::Amount,
        "SELECT IFNULL(SUM(ol_amount), 0) INTO @a FROM order_line WHERE ol_w_id = ? \
         AND ol_d_id = ? AND ol_o_id = @o",
    ),
    (
        S::Balance,
        "UPDATE customer SET c_balance = c_balance + @a, c_delivery_cnt = \
         c_delivery_cnt + (@o IS NOT NULL) WHERE c_w_id = ? AND c_d_id = ? AND c_id = \
         @c",
    ),
    (
        S::Horizon,
        "SELECT d_next_o_id INTO @o FROM district WHERE d_w_id = ? AND d_id = ?",
    ),
    (
        S::LowStock,
        "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_i_id = ol_i_id \
         WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < @o AND ol_o_id >= @o - 20 AND \
         s_w_id = ? AND s_quantity < ?",
    ),
];

/// What some statements have once for each line of an order.
const REPEATED: [(Statement, &str); 3] = [
    (S::Items, "?"),
    (S::Stocks, "(?, ?)"),
    (
        S::Lines,
        "(@o, ?, ?, ?, ?, ?, ?, ?, 'an order of ten lines   ')",
    ),
];

/// A statement of a drawn transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The place of its text in [`texts`].
    pub(super) statement: usize,
    pub(super) values: Vec<Value>,
}

/// The texts of all statements.
pub(super) fn texts() -> Vec<String> {
    let text = |(statement, text): (Statement, &str)| {
        let part = REPEATED.into_iter().find(|(of, _)| *of == statement);
        let parts = part.map(|(_, part)| vec![part; stdx::to_usize(LINES)].join(", "));
        text.replace('#', &parts.unwrap_or_default())
    };
    STATEMENTS.into_iter().map(text).collect()
}

/// The statements of a transaction, as they are drawn.
struct Script<'a> {
    draw: &'a mut Draw,
    calls: Vec<Call>,
    /// Warehouses in all.
    warehouses: u64,
    warehouse: u64,
    district: u64,
}

/// Draws a transaction over so many warehouses.
pub(super) fn transaction(draw: &mut Draw, warehouses: u64) -> Vec<Call> {
    let mut script = Script {
        warehouse: 1 + draw.below(warehouses),
        district: 1 + draw.below(DISTRICTS),
        draw,
        calls: Vec::new(),
        warehouses,
    };
    script.call(S::Begin, &[]);
    // Of a hundred transactions, by the standard's least shares.
    match script.draw.below(100) {
        0..45 => script.new_order(),
        45..88 => script.payment(),
        88..92 => script.order_status(),
        92..96 => script.delivery(),
        _ => script.stock_level(),
    }
    script.calls
}

impl Script<'_> {
    fn call(&mut self, statement: Statement, numbers: &[u64]) {
        let values = numbers.iter().map(|number| Value::Number(*number));
        self.calls.push(Call {
            statement: statement as usize,
            values: values.collect(),
        });
    }

    /// The standard's uneven choice out of `1..=most` (clause 2.1.6).
    fn uneven(&mut self, width: u64, most: u64) -> u64 {
        let mixed = self.draw.below(width + 1) | (1 + self.draw.below(most));
        // The constant of a run may be any number up to the width.
        1 + (mixed + width / 3) % most
    }

    fn customer(&mut self) -> u64 {
        self.uneven(1023, CUSTOMERS)
    }

    /// A warehouse but the own one, if there is another.
    fn remote(&mut self) -> u64 {
        match self.warehouses {
            1 => self.warehouse,
            count => 1 + (self.warehouse + self.draw.below(count - 1)) % count,
        }
    }

    fn new_order(&mut self) {
        let (w, d) = (self.warehouse, self.district);
        let customer = self.customer();
        let mut lines = Vec::new();
        while stdx::to_u64(lines.len()) < LINES {
            let item = self.uneven(8191, ITEMS);
            let supply = match self.draw.below(100) {
                0 => self.remote(),
                _ => w,
            };
            if lines.iter().all(|(_, other)| *other != item) {
                lines.push((supply, item));
            }
        }
        // In one order, so that two orders do not wait for each other.
        lines.sort_unstable();
        let is_local = lines.iter().all(|(supply, _)| *supply == w);
        self.call(S::Buyer, &[w, d, customer]);
        self.call(S::TakeNumber, &[w, d]);
        self.call(S::NextNumber, &[w, d]);
        self.call(S::Order, &[w, d, customer, LINES, u64::from(is_local)]);
        self.call(S::NewOrder, &[w, d]);
        let items: Vec<u64> = lines.iter().map(|(_, item)| *item).collect();
        self.call(S::Items, &items);
        let keys: Vec<u64> = lines
            .iter()
            .flat_map(|(supply, item)| [*supply, *item])
            .collect();
        self.call(S::Stocks, &keys);
        let mut inserted = Vec::new();
        for (number, (supply, item)) in (1..).zip(lines) {
            let quantity = 1 + self.draw.below(10);
            let is_remote = u64::from(supply != w);
            let values = [
                quantity, quantity, quantity, quantity, is_remote, supply, item,
            ];
            self.call(S::Stock, &values);
            let amount = quantity * (1 + self.draw.below(100));
            inserted.extend([w, d, number, item, supply, quantity, amount]);
        }
        self.call(S::Lines, &inserted);
        // One of a hundred names an item that is not there.
        match self.draw.below(100) {
            0 => self.call(S::Rollback, &[]),
            _ => self.call(S::Commit, &[]),
        }
    }

    /// Finds a customer, in six of ten cases by name.
    fn find_customer(&mut self, w: u64, d: u64) {
        if 60 <= self.draw.below(100) {
            let customer = self.customer();
            return self.call(S::ByNumber, &[w, d, customer]);
        }
        let number = self.uneven(255, 1000) - 1;
        let syllable = |digit: u64| SYLLABLES.get(stdx::to_usize(digit % 10)).copied();
        let name = [number / 100, number / 10, number]
            .into_iter()
            .filter_map(syllable);
        let name = name.collect::<String>().into_bytes();
        self.calls.push(Call {
            statement: S::ByName as usize,
            values: vec![Value::Number(w), Value::Number(d), Value::Text(name)],
        });
    }

    fn payment(&mut self) {
        let (w, d) = (self.warehouse, self.district);
        let (of_w, of_d) = match self.draw.below(100) {
            0..15 => (self.remote(), 1 + self.draw.below(DISTRICTS)),
            _ => (w, d),
        };
        let amount = 1 + self.draw.below(5000);
        self.call(S::PayWarehouse, &[amount, w]);
        self.call(S::Warehouse, &[w]);
        self.call(S::PayDistrict, &[amount, w, d]);
        self.call(S::District, &[w, d]);
        self.find_customer(of_w, of_d);
        self.call(S::LockCustomer, &[of_w, of_d]);
        let pay = match self.draw.below(10) {
            0 => S::PayBadCredit,
            _ => S::Pay,
        };
        self.call(pay, &[amount, amount, of_w, of_d]);
        self.call(S::History, &[of_d, of_w, d, w, amount]);
        self.call(S::Commit, &[]);
    }

    fn order_status(&mut self) {
        let (w, d) = (self.warehouse, self.district);
        self.find_customer(w, d);
        self.call(S::Customer, &[w, d]);
        self.call(S::LastOrder, &[w, d]);
        self.call(S::OrderLines, &[w, d]);
        self.call(S::Commit, &[]);
    }

    fn delivery(&mut self) {
        let w = self.warehouse;
        let carrier = 1 + self.draw.below(10);
        for d in 1..=DISTRICTS {
            self.call(S::Oldest, &[w, d]);
            self.call(S::Delivered, &[w, d]);
            self.call(S::Carrier, &[carrier, w, d]);
            self.call(S::Receiver, &[w, d]);
            self.call(S::LinesDelivered, &[w, d]);
            self.call(S::Amount, &[w, d]);
            self.call(S::Balance, &[w, d]);
        }
        self.call(S::Commit, &[]);
    }

    fn stock_level(&mut self) {
        let (w, d) = (self.warehouse, self.district);
        let threshold = 10 + self.draw.below(11);
        self.call(S::Horizon, &[w, d]);
        self.call(S::LowStock, &[w, d, w, threshold]);
        self.call(S::Commit, &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::draw::Distribution;

    fn draw() -> Draw {
        Draw::new(7, 20, Distribution::Uniform)
    }

    #[test]
    fn each_statement_stands_at_its_number_and_gets_its_values() {
        for (number, (statement, _)) in STATEMENTS.into_iter().enumerate() {
            assert_eq!(statement as usize, number);
        }
        let (mut draw, texts) = (draw(), texts());
        let mut seen = vec![false; texts.len()];
        for _ in 0..2000 {
            for call in transaction(&mut draw, 20) {
                let text = &texts[call.statement];
                assert_eq!(text.matches('?').count(), call.values.len(), "{text}");
                seen[call.statement] = true;
            }
        }
        assert!(seen.iter().all(|seen| *seen), "{seen:?}");
    }

    #[test]
    fn the_mean_transaction_has_its_steps() {
        let mut draw = draw();
        let lengths = (0..100_000).map(|_| stdx::to_u64(transaction(&mut draw, 20).len()));
        let mean = stdx::u64_to_f64(lengths.sum()) / 1e5;
        assert!((mean / MEAN_STEPS - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn rows_are_those_that_were_loaded() {
        let mut draw = draw();
        for warehouses in [1, 2, 20] {
            let mut script = Script {
                warehouse: 1,
                district: 1,
                draw: &mut draw,
                calls: Vec::new(),
                warehouses,
            };
            for _ in 0..2000 {
                assert!((1..=CUSTOMERS).contains(&script.customer()));
                assert!((1..=ITEMS).contains(&script.uneven(8191, ITEMS)));
                let remote = script.remote();
                assert!((1..=warehouses).contains(&remote));
                assert!(warehouses == 1 || remote != 1);
            }
        }
    }
}
