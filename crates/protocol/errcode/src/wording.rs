//! [`Wording`]: a text that Plateau sends with a number in place of the table's.
//!
//! MariaDB has many texts in its code, under numbers whose own text says less. Some others would
//! name settings that do not exist here, or promise what does not happen.

use std::fmt::Display;

use crate::code::ErrorCode;
use crate::format;
use crate::origin::{Origin, Retry};
use crate::table::*;

/// Another text of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wording {
    /// The number.
    pub code: ErrorCode,
    /// Who causes the error.
    pub origin: Origin,
    /// Whether the statement may be tried again.
    pub retry: Retry,
    /// The text, with places as in the table.
    pub format: &'static str,
}

impl Wording {
    /// The text, with `arguments` in its places, in their order.
    ///
    /// # Panics
    /// In debug builds if the format has another number of places: a bug of the caller.
    pub fn message(self, arguments: &[&dyn Display]) -> String {
        let (places, count) = (format::places(self.format), arguments.len());
        debug_assert_eq!(places, count, "arguments of {self:?}");
        format::fill(self.format, arguments)
    }
}

macro_rules! wordings {
    ($($code:ident $origin:ident $retry:ident $name:ident $format:literal;)*) => {
        $(
            #[doc = $format]
            pub const $name: Wording = Wording {
                code: $code,
                origin: Origin::$origin,
                retry: Retry::$retry,
                format: $format,
            };
        )*
        /// Every wording.
        #[cfg(test)]
        const ALL: &[Wording] = &[$($name,)*];
    };
}

wordings! {
    ER_CONNECT_TO_FOREIGN_DATA_SOURCE Server Now WORDS_NO_SERVER
        "No server of the service '%s' can be reached: %s";
    ER_CON_COUNT_ERROR Ourselves Never WORDS_CONNECTIONS_IN_USE
        "Too many connections: %s";
    ER_NET_READ_ERROR Server Never WORDS_SERVER_LOST
        "Lost connection to the server '%s' during the statement";
    ER_ERROR_DURING_COMMIT Server Never WORDS_PARTLY_COMMITTED
        "The transaction was committed on %s, is in doubt on '%s' (%s), and was rolled back \
         elsewhere";
    ER_ERROR_DURING_COMMIT Client Never WORDS_WRITE_SET_TOO_LARGE
        "The transaction changes more than one write set of the group may have; split it";
    ER_UNKNOWN_ERROR Ourselves Never WORDS_INCONSISTENT
        "A row of %s is not as the group has it: this node's data have drifted from the group's";
    ER_NOT_ALLOWED_COMMAND Client Never WORDS_REFUSED
        "%s";
    ER_FOREIGN_SERVER_DOESNT_EXIST Client Never WORDS_NO_SUCH_SERVER
        "There is no server '%s'; the servers are %s";
    ER_WRONG_ARGUMENTS Client Never WORDS_EXPLAIN_OTHER
        "EXPLAIN ROUTE of a client is about its own session, which is not that %s '%s'";
    ER_WRONG_ARGUMENTS Client Never WORDS_NO_SUCH_SERVICE
        "There is no service '%s'; the services are %s";
    ER_WRONG_ARGUMENTS Client Never WORDS_WHICH_SERVICE
        "EXPLAIN ROUTE needs SERVICE and a name; the services are %s";
    ER_WRONG_VALUE_FOR_VAR Client Never WORDS_NO_SUCH_ORDER
        "A server can be set to 'up', 'drain' or 'maintenance', not to '%s'";
    ER_NOT_SUPPORTED_AUTH_MODE Client Never WORDS_FOREIGN_PLUGIN
        "The account '%s' uses the plugin %s, by which the gateway cannot log in for it; give it \
         mysql_native_password or caching_sha2_password";
    ER_DISK_FULL Ourselves Never WORDS_DISK_FULL
        "Disk full (data); the statement was not carried out. Free some space and repeat it \
         (errno: 28 \"No space left on device\")";
    ER_UNKNOWN_ERROR Client Never WORDS_NOT_RELOADED
        "The settings file was not taken, and nothing was changed: %s";
    ER_UNKNOWN_ERROR Ourselves Never WORDS_LOG_FAILED
        "The log cannot be written";
    ER_UNKNOWN_ERROR Client Never WORDS_ORDER_IGNORED
        "ORDER BY ignored as there is a user-defined clustered index in the table '%-.192s'";
    ER_UNKNOWN_ERROR Client Never WORDS_LONG_DATA
        "Parameter of prepared statement which is set through mysql_send_long_data() is longer \
         than 'max_allowed_packet' bytes";
    ER_CHECK_NO_SUCH_TABLE Ourselves Now WORDS_TABLE_CHANGED
        "Table definition has changed";
    ER_STACK_OVERRUN_NEED_MORE Client Never WORDS_TOO_DEEP
        "Thread stack overrun: %d of %d %s";
    ER_STACK_OVERRUN_NEED_MORE Client Never WORDS_NESTED_TOO_DEEPLY
        "Statement is nested too deeply near '%s' at line %d";
    ER_INDEX_CORRUPT Ourselves Never WORDS_DAMAGED
        "%s";
    ER_ILLEGAL_PARAMETER_DATA_TYPES2_FOR_OPERATION Client Never WORDS_CANNOT_CAST_IN_ASSIGNMENT
        "Cannot cast '%s' as '%s' in assignment of %`s.%`s.%`s";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wordings_differ_from_the_texts_of_their_numbers() {
        for wording in ALL {
            assert_ne!(wording.format, wording.code.format(), "{wording:?}");
            assert!(wording.code.symbol().is_some(), "{wording:?}");
        }
    }

    #[test]
    fn a_wording_may_have_an_origin_of_its_own() {
        assert_eq!(WORDS_LONG_DATA.code.origin(), Origin::Ourselves);
        assert_eq!(WORDS_LONG_DATA.origin, Origin::Client);
        let message = WORDS_TOO_DEEP.message(&[&2, &3, &"bytes"]);
        assert_eq!(message, "Thread stack overrun: 2 of 3 bytes");
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "arguments of")]
    fn a_wrong_number_of_arguments_is_a_bug() {
        let _ = WORDS_LOG_FAILED.message(&[&1]);
    }
}
