//! [`ServerVersion`]: what a greeting says of the program behind it.

/// Whose protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// MariaDB, and Plateau, which greets as one.
    MariaDb,
    /// MySQL, and whatever does not name itself.
    MySql,
}

/// A server's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerVersion {
    /// As the server tells it.
    pub text: String,
    /// Whose protocol it speaks.
    pub product: Product,
    /// Major, minor and patch number; zeros where the text has none.
    pub numbers: (u16, u16, u16),
}

/// MariaDB before 11 puts this before its version, for replicas that cannot read a 10.
const OLD_PREFIX: &str = "5.5.5-";

impl ServerVersion {
    /// Reads a greeting's text.
    pub fn parse(text: &[u8]) -> ServerVersion {
        let text = String::from_utf8_lossy(text).into_owned();
        let is_mariadb = text.to_ascii_lowercase().contains("mariadb");
        let product = if is_mariadb {
            Product::MariaDb
        } else {
            Product::MySql
        };
        let own = text.strip_prefix(OLD_PREFIX).filter(|_| is_mariadb);
        let head = own.unwrap_or(&text).split(['-', '+', ' ']).next();
        let mut parts = head.unwrap_or_default().split('.');
        let mut number = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
        let numbers = (number(), number(), number());
        ServerVersion {
            text,
            product,
            numbers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts() {
        for (text, product, numbers) in [
            (
                "5.5.5-10.11.6-MariaDB-0+deb12u1",
                Product::MariaDb,
                (10, 11, 6),
            ),
            ("11.4.2-MariaDB", Product::MariaDb, (11, 4, 2)),
            ("8.0.36", Product::MySql, (8, 0, 36)),
            ("8.4.0-commercial", Product::MySql, (8, 4, 0)),
            ("5.5.5-log", Product::MySql, (5, 5, 5)),
            ("", Product::MySql, (0, 0, 0)),
            ("x.99999.1", Product::MySql, (0, 0, 1)),
        ] {
            let version = ServerVersion::parse(text.as_bytes());
            assert_eq!(
                (version.product, version.numbers),
                (product, numbers),
                "{text}"
            );
            assert_eq!(version.text, text);
        }
    }
}
