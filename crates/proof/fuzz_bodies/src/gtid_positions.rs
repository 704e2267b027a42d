//! Positions of both products: texts of servers and of sessions.

use monitor::gtid::mariadb::MariaDbPosition;
use monitor::gtid::mysql::MySqlSet;

use crate::choices::Choices;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let cut = usize::from(choices.u8());
    let text = String::from_utf8_lossy(choices.rest());
    let (left, right) = text.split_at(text.floor_char_boundary(cut));
    if let (Ok(left), Ok(right)) = (MariaDbPosition::parse(left), MariaDbPosition::parse(right)) {
        mariadb(&left, &right);
    }
    if let (Ok(left), Ok(right)) = (MySqlSet::parse(left), MySqlSet::parse(right)) {
        mysql(&left, &right);
    }
}

fn mariadb(left: &MariaDbPosition, right: &MariaDbPosition) {
    let again = MariaDbPosition::parse(&left.to_string());
    assert_eq!(again.as_ref(), Ok(left));
    assert!(left.covers(left));
    let both = left.clone().merged(right);
    assert!(both.covers(left) && both.covers(right));
    assert_eq!(left.covers(right), both.covers(right) && left.covers(&both));
}

fn mysql(left: &MySqlSet, right: &MySqlSet) {
    let again = MySqlSet::parse(&left.to_string());
    assert_eq!(again.as_ref(), Ok(left));
    assert!(left.covers(left));
    let both = MySqlSet::parse(&format!("{left},{right}")).expect("two sets are a set");
    assert!(both.covers(left) && both.covers(right));
    assert_eq!(left.covers(right), left.covers(&both));
}
