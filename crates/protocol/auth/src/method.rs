//! [`Method`]: the authentication methods and their plugin names.

/// An authentication method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// SHA-1 of password and scramble; every client knows it.
    NativePassword,
    /// MySQL 8's default.
    CachingSha2,
    /// MariaDB's signatures by a key made of the password.
    Ed25519,
}

/// The transport of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Others can listen.
    Plain,
    /// TLS or a unix socket.
    Secure,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 3] = [Method::NativePassword, Method::CachingSha2, Method::Ed25519];

    /// The name in `CREATE USER .. IDENTIFIED VIA`.
    pub fn account_plugin(self) -> &'static str {
        match self {
            Method::NativePassword => "mysql_native_password",
            Method::CachingSha2 => "caching_sha2_password",
            Method::Ed25519 => "ed25519",
        }
    }

    /// The name that is sent to clients.
    pub fn client_plugin(self) -> &'static str {
        match self {
            Method::NativePassword => "mysql_native_password",
            Method::CachingSha2 => "caching_sha2_password",
            Method::Ed25519 => "client_ed25519",
        }
    }

    /// The method for a name in `CREATE USER .. IDENTIFIED VIA`.
    pub fn from_account_plugin(name: &str) -> Option<Method> {
        Method::ALL
            .into_iter()
            .find(|method| method.account_plugin() == name)
    }

    /// The method for a name that a client or server sent.
    pub fn from_client_plugin(name: &[u8]) -> Option<Method> {
        Method::ALL
            .into_iter()
            .find(|method| method.client_plugin().as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_the_method() {
        for method in Method::ALL {
            assert_eq!(
                Method::from_account_plugin(method.account_plugin()),
                Some(method)
            );
            let name = method.client_plugin().as_bytes();
            assert_eq!(Method::from_client_plugin(name), Some(method));
        }
        assert_eq!(Method::from_account_plugin("mysql_old_password"), None);
    }
}
