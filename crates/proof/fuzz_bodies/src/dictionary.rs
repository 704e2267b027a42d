//! Metadata: entries of the dictionary, accounts.

use catalog::AccountName;
use catalog::account_record::{decode_account, encode_account};

use crate::choices::Choices;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    match choices.u8() % 2 {
        0 => entry(choices.rest()),
        _ => account(choices.rest()),
    }
}

/// A decoded entry is encoded unchanged, except for bytes that may follow it.
fn entry(bytes: &[u8]) {
    let Some(encoded) = engine::reencode_dictionary_entry(bytes) else {
        return;
    };
    let again = engine::reencode_dictionary_entry(&encoded);
    assert_eq!(again.as_deref(), Some(encoded.as_slice()));
}

fn account(text: &[u8]) {
    let name = AccountName {
        user: "somebody".to_owned(),
        host: "%".to_owned(),
    };
    let Ok(account) = decode_account(name.clone(), text) else {
        return;
    };
    let encoded = encode_account(&account);
    let again = decode_account(name, encoded.as_bytes()).expect("just written");
    assert_eq!(again, account);
    assert!(!account.show_grants().is_empty());
}
