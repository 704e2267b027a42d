//! Accounts that clients of a load log in as. Root is an administrator, whom a server may prefer.

use anyhow::Result;
use testkit::Client;

/// The name of the account with this number.
pub(crate) fn account(number: u32) -> String {
    format!("user{number}")
}

/// Creates the first `count` accounts, which may do all in a database.
pub(crate) fn create_accounts(client: &mut Client, count: u32, database: &str) -> Result<()> {
    for number in 0..count {
        let name = account(number);
        client.run(&format!("CREATE USER {name}@'%'"))?;
        client.run(&format!("GRANT ALL ON {database}.* TO {name}@'%'"))?;
    }
    Ok(())
}
