//! The table: number, SQLSTATE, name, origin, retry and message format of every error that Plateau
//! can send.
//!
//! Numbers, states, names and formats are MariaDB 10.11's, because clients and applications test
//! for them; `tests/reference.rs` compares each line with an installed server. The format's places
//! are explained in `format.rs`. Sorted by number: `lookup.rs` searches it. Texts that differ from
//! MariaDB's are in `wording.rs`.
//!
//! A line without origin and retry is the client's, and never tried again.
//!
//! It is a macro because one line must become both a constant and a line of the table; two lists
//! would drift apart.

use crate::code::{Entry, ErrorCode, Sqlstate};
use crate::origin::{Origin, Retry};

macro_rules! errors {
    ($(
        $number:literal $sqlstate:literal $symbol:ident $($origin:ident $retry:ident)?
        $format:literal;
    )*) => {
        $(
            #[doc = concat!("`", $sqlstate, "`: ", $format)]
            pub const $symbol: ErrorCode = ErrorCode($number);
        )*
        /// Every error, in order of the numbers.
        pub(crate) static TABLE: &[Entry] = &[
            $(Entry {
                code: $symbol,
                sqlstate: sqlstate($sqlstate),
                symbol: stringify!($symbol),
                origin: stated(&[$(Origin::$origin)?], Origin::Client),
                retry: stated(&[$(Retry::$retry)?], Retry::Never),
                format: $format,
            },)*
        ];
    };
}

/// What a line states, or what holds for lines that state nothing.
const fn stated<T: Copy>(stated: &[T], otherwise: T) -> T {
    match stated {
        [it] => *it,
        _ => otherwise,
    }
}

const fn sqlstate(text: &str) -> Sqlstate {
    match text.as_bytes() {
        [a, b, c, d, e] => Sqlstate([*a, *b, *c, *d, *e]),
        _ => panic!("a SQLSTATE has five characters"),
    }
}

errors! {
    3 "HY000" EE_WRITE Ourselves Never
        "Error writing file '%s' (Errcode: %M)";
    1003 "HY000" ER_YES
        "YES";
    1004 "HY000" ER_CANT_CREATE_FILE Ourselves Never
        "Can't create file '%-.200s' (errno: %M)";
    1005 "HY000" ER_CANT_CREATE_TABLE
        "Can't create table %`s.%`s (errno: %M)";
    1006 "HY000" ER_CANT_CREATE_DB Ourselves Never
        "Can't create database '%-.192s' (errno: %M)";
    1007 "HY000" ER_DB_CREATE_EXISTS
        "Can't create database '%-.192s'; database exists";
    1008 "HY000" ER_DB_DROP_EXISTS
        "Can't drop database '%-.192s'; database doesn't exist";
    1011 "HY000" ER_CANT_DELETE_FILE Ourselves Never
        "Error on delete of '%-.192s' (errno: %M)";
    1016 "HY000" ER_CANT_OPEN_FILE Ourselves Never
        "Can't open file: '%-.200s' (errno: %M)";
    1017 "HY000" ER_FILE_NOT_FOUND Ourselves Never
        "Can't find file: '%-.200s' (errno: %M)";
    1020 "HY000" ER_CHECKREAD Ourselves Never
        "Record has changed since last read in table '%-.192s'; try restarting transaction";
    1021 "HY000" ER_DISK_FULL Ourselves Never
        "Disk full (%s); waiting for someone to free some space... (errno: %M)";
    1022 "23000" ER_DUP_KEY
        "Can't write; duplicate key in table '%-.192s'";
    1024 "HY000" ER_ERROR_ON_READ Ourselves Never
        "Error reading file '%-.200s' (errno: %M)";
    1025 "HY000" ER_ERROR_ON_RENAME Ourselves Never
        "Error on rename of '%-.210s' to '%-.210s' (errno: %M)";
    1026 "HY000" ER_ERROR_ON_WRITE Ourselves Never
        "Error writing file '%-.200s' (errno: %M)";
    1028 "HY000" ER_FILSORT_ABORT Ourselves Never
        "Sort aborted";
    1030 "HY000" ER_GET_ERRNO Ourselves Never
        "Got error %M from storage engine %s";
    1031 "HY000" ER_ILLEGAL_HA
        "Storage engine %s of the table %`s.%`s doesn't have this option";
    1032 "HY000" ER_KEY_NOT_FOUND
        "Can't find record in '%-.192s'";
    1033 "HY000" ER_NOT_FORM_FILE Ourselves Never
        "Incorrect information in file: '%-.200s'";
    1034 "HY000" ER_NOT_KEYFILE Ourselves Never
        "Index for table '%-.200s' is corrupt; try to repair it";
    1036 "HY000" ER_OPEN_AS_READONLY
        "Table '%-.192s' is read only";
    1037 "HY001" ER_OUTOFMEMORY Ourselves Never
        "Out of memory; restart server and try again (needed %d bytes)";
    1038 "HY001" ER_OUT_OF_SORTMEMORY Ourselves Never
        "Out of sort memory, consider increasing server sort buffer size";
    1040 "08004" ER_CON_COUNT_ERROR Ourselves Never
        "Too many connections";
    1041 "HY000" ER_OUT_OF_RESOURCES Ourselves Never
        "Out of memory.";
    1042 "08S01" ER_BAD_HOST_ERROR
        "Can't get hostname for your address";
    1043 "08S01" ER_HANDSHAKE_ERROR
        "Bad handshake";
    1044 "42000" ER_DBACCESS_DENIED_ERROR
        "Access denied for user '%s'@'%s' to database '%-.192s'";
    1045 "28000" ER_ACCESS_DENIED_ERROR
        "Access denied for user '%s'@'%s' (using password: %s)";
    1046 "3D000" ER_NO_DB_ERROR
        "No database selected";
    1047 "08S01" ER_UNKNOWN_COM_ERROR
        "Unknown command";
    1048 "23000" ER_BAD_NULL_ERROR
        "Column '%-.192s' cannot be null";
    1049 "42000" ER_BAD_DB_ERROR
        "Unknown database '%-.192s'";
    1050 "42S01" ER_TABLE_EXISTS_ERROR
        "Table '%-.192s' already exists";
    1051 "42S02" ER_BAD_TABLE_ERROR
        "Unknown table '%-.100T'";
    1052 "23000" ER_NON_UNIQ_ERROR
        "Column '%-.192s' in %-.192s is ambiguous";
    1053 "08S01" ER_SERVER_SHUTDOWN Ourselves IfRead
        "Server shutdown in progress";
    1054 "42S22" ER_BAD_FIELD_ERROR
        "Unknown column '%-.192s' in '%-.192s'";
    1055 "42000" ER_WRONG_FIELD_WITH_GROUP
        "'%-.192s' isn't in GROUP BY";
    1056 "42000" ER_WRONG_GROUP_FIELD
        "Can't group on '%-.192s'";
    1057 "42000" ER_WRONG_SUM_SELECT
        "Statement has sum functions and columns in same statement";
    1058 "21S01" ER_WRONG_VALUE_COUNT
        "Column count doesn't match value count";
    1059 "42000" ER_TOO_LONG_IDENT
        "Identifier name '%-.100T' is too long";
    1060 "42S21" ER_DUP_FIELDNAME
        "Duplicate column name '%-.192s'";
    1061 "42000" ER_DUP_KEYNAME
        "Duplicate key name '%-.192s'";
    1062 "23000" ER_DUP_ENTRY
        "Duplicate entry '%-.192T' for key %d";
    1063 "42000" ER_WRONG_FIELD_SPEC
        "Incorrect column specifier for column '%-.192s'";
    1064 "42000" ER_PARSE_ERROR
        "%s near '%-.80T' at line %d";
    1065 "42000" ER_EMPTY_QUERY
        "Query was empty";
    1066 "42000" ER_NONUNIQ_TABLE
        "Not unique table/alias: '%-.192s'";
    1067 "42000" ER_INVALID_DEFAULT
        "Invalid default value for '%-.192s'";
    1068 "42000" ER_MULTIPLE_PRI_KEY
        "Multiple primary key defined";
    1069 "42000" ER_TOO_MANY_KEYS
        "Too many keys specified; max %d keys allowed";
    1070 "42000" ER_TOO_MANY_KEY_PARTS
        "Too many key parts specified; max %d parts allowed";
    1071 "42000" ER_TOO_LONG_KEY
        "Specified key was too long; max key length is %d bytes";
    1072 "42000" ER_KEY_COLUMN_DOES_NOT_EXIST
        "Key column '%-.192s' doesn't exist in table";
    1073 "42000" ER_BLOB_USED_AS_KEY
        "BLOB column %`s can't be used in key specification in the %s table";
    1074 "42000" ER_TOO_BIG_FIELDLENGTH
        "Column length too big for column '%-.192s' (max = %lu); use BLOB or TEXT instead";
    1075 "42000" ER_WRONG_AUTO_KEY
        "Incorrect table definition; there can be only one auto column and it must be defined as \
         a key";
    1080 "08S01" ER_FORCING_CLOSE
        "%s: Forcing close of thread %ld  user: '%-.48s'";
    1081 "08S01" ER_IPSOCK_ERROR Ourselves Never
        "Can't create IP socket";
    1082 "42S12" ER_NO_SUCH_INDEX
        "Table '%-.192s' has no index like the one used in CREATE INDEX; recreate the table";
    1083 "42000" ER_WRONG_FIELD_TERMINATORS
        "Field separator argument is not what is expected; check the manual";
    1084 "42000" ER_BLOBS_AND_NO_TERMINATED
        "You can't use fixed rowlength with BLOBs; please use 'fields terminated by'";
    1085 "HY000" ER_TEXTFILE_NOT_READABLE
        "The file '%-.128s' must be in the database directory or be readable by all";
    1086 "HY000" ER_FILE_EXISTS_ERROR
        "File '%-.200s' already exists";
    1087 "HY000" ER_LOAD_INFO
        "Records: %ld  Deleted: %ld  Skipped: %ld  Warnings: %ld";
    1088 "HY000" ER_ALTER_INFO
        "Records: %ld  Duplicates: %ld";
    1089 "HY000" ER_WRONG_SUB_KEY
        "Incorrect prefix key; the used key part isn't a string, the used length is longer than \
         the key part, or the storage engine doesn't support unique prefix keys";
    1090 "42000" ER_CANT_REMOVE_ALL_FIELDS
        "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
    1091 "42000" ER_CANT_DROP_FIELD_OR_KEY
        "Can't DROP %s %`-.192s; check that it exists";
    1092 "HY000" ER_INSERT_INFO
        "Records: %ld  Duplicates: %ld  Warnings: %ld";
    1093 "HY000" ER_UPDATE_TABLE_USED
        "Table '%-.192s' is specified twice, both as a target for '%s' and as a separate source \
         for data";
    1094 "HY000" ER_NO_SUCH_THREAD
        "Unknown thread id: %lu";
    1095 "HY000" ER_KILL_DENIED_ERROR
        "You are not owner of thread %lld";
    1096 "HY000" ER_NO_TABLES_USED
        "No tables used";
    1097 "HY000" ER_TOO_BIG_SET
        "Too many strings for column %-.192s and SET";
    1099 "HY000" ER_TABLE_NOT_LOCKED_FOR_WRITE
        "Table '%-.192s' was locked with a READ lock and can't be updated";
    1100 "HY000" ER_TABLE_NOT_LOCKED
        "Table '%-.192s' was not locked with LOCK TABLES";
    1102 "42000" ER_WRONG_DB_NAME
        "Incorrect database name '%-.100T'";
    1103 "42000" ER_WRONG_TABLE_NAME
        "Incorrect table name '%-.100s'";
    1104 "42000" ER_TOO_BIG_SELECT
        "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET \
         SQL_BIG_SELECTS=1 or SET MAX_JOIN_SIZE=# if the SELECT is okay";
    1105 "HY000" ER_UNKNOWN_ERROR Ourselves Never
        "Unknown error";
    1106 "42000" ER_UNKNOWN_PROCEDURE
        "Unknown procedure '%-.192s'";
    1107 "42000" ER_WRONG_PARAMCOUNT_TO_PROCEDURE
        "Incorrect parameter count to procedure '%-.192s'";
    1109 "42S02" ER_UNKNOWN_TABLE
        "Unknown table '%-.192s' in %-.32s";
    1110 "42000" ER_FIELD_SPECIFIED_TWICE
        "Column '%-.192s' specified twice";
    1111 "HY000" ER_INVALID_GROUP_FUNC_USE
        "Invalid use of group function";
    1112 "42000" ER_UNSUPPORTED_EXTENSION
        "Table '%-.192s' uses an extension that doesn't exist in this MariaDB version";
    1113 "42000" ER_TABLE_MUST_HAVE_COLUMNS
        "A table must have at least 1 column";
    1114 "HY000" ER_RECORD_FILE_FULL Ourselves Never
        "The table '%-.192s' is full";
    1115 "42000" ER_UNKNOWN_CHARACTER_SET
        "Unknown character set: '%-.64s'";
    1116 "HY000" ER_TOO_MANY_TABLES
        "Too many tables; MariaDB can only use %d tables in a join";
    1117 "HY000" ER_TOO_MANY_FIELDS
        "Too many columns";
    1118 "42000" ER_TOO_BIG_ROWSIZE
        "Row size too large. The maximum row size for the used table type, not counting BLOBs, \
         is %ld. This includes storage overhead, check the manual. You have to change some \
         columns to TEXT or BLOBs";
    1119 "HY000" ER_STACK_OVERRUN
        "Thread stack overrun:  Used: %ld of a %ld stack.  Use 'mariadbd --thread_stack=#' to \
         specify a bigger stack if needed";
    1120 "42000" ER_WRONG_OUTER_JOIN
        "Cross dependency found in OUTER JOIN; examine your ON conditions";
    1127 "HY000" ER_CANT_FIND_DL_ENTRY
        "Can't find symbol '%-.128s' in library";
    1128 "HY000" ER_FUNCTION_NOT_DEFINED
        "Function '%-.192s' is not defined";
    1129 "HY000" ER_HOST_IS_BLOCKED
        "Host '%-.64s' is blocked because of many connection errors; unblock with 'mariadb-admin \
         flush-hosts'";
    1130 "HY000" ER_HOST_NOT_PRIVILEGED
        "Host '%-.64s' is not allowed to connect to this MariaDB server";
    1131 "42000" ER_PASSWORD_ANONYMOUS_USER
        "You are using MariaDB as an anonymous user and anonymous users are not allowed to \
         modify user settings";
    1132 "42000" ER_PASSWORD_NOT_ALLOWED
        "You must have privileges to update tables in the mysql database to be able to change \
         passwords for others";
    1133 "28000" ER_PASSWORD_NO_MATCH
        "Can't find any matching row in the user table";
    1134 "HY000" ER_UPDATE_INFO
        "Rows matched: %ld  Changed: %ld  Warnings: %ld";
    1136 "21S01" ER_WRONG_VALUE_COUNT_ON_ROW
        "Column count doesn't match value count at row %lu";
    1137 "HY000" ER_CANT_REOPEN_TABLE
        "Can't reopen table: '%-.192s'";
    1138 "22004" ER_INVALID_USE_OF_NULL
        "Invalid use of NULL value";
    1139 "42000" ER_REGEXP_ERROR
        "Regex error '%s'";
    1140 "42000" ER_MIX_OF_GROUP_FUNC_AND_FIELDS
        "Mixing of GROUP columns (MIN(),MAX(),COUNT(),...) with no GROUP columns is illegal if \
         there is no GROUP BY clause";
    1141 "42000" ER_NONEXISTING_GRANT
        "There is no such grant defined for user '%-.48s' on host '%-.64s'";
    1142 "42000" ER_TABLEACCESS_DENIED_ERROR
        "%-.100T command denied to user '%s'@'%s' for table %`s.%`s";
    1143 "42000" ER_COLUMNACCESS_DENIED_ERROR
        "%-.32s command denied to user '%s'@'%s' for column '%-.192s' in table '%-.192s'";
    1144 "42000" ER_ILLEGAL_GRANT_FOR_TABLE
        "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be \
         used";
    1145 "42000" ER_GRANT_WRONG_HOST_OR_USER
        "The host or user argument to GRANT is too long";
    1146 "42S02" ER_NO_SUCH_TABLE
        "Table '%-.192s.%-.192s' doesn't exist";
    1147 "42000" ER_NONEXISTING_TABLE_GRANT
        "There is no such grant defined for user '%-.48s' on host '%-.64s' on table '%-.192s'";
    1148 "42000" ER_NOT_ALLOWED_COMMAND
        "The used command is not allowed with this MariaDB version";
    1149 "42000" ER_SYNTAX_ERROR
        "You have an error in your SQL syntax; check the manual that corresponds to your MariaDB \
         server version for the right syntax to use";
    1152 "08S01" ER_ABORTING_CONNECTION
        "Aborted connection %ld to db: '%-.192s' user: '%-.48s' (%-.64s)";
    1153 "08S01" ER_NET_PACKET_TOO_LARGE
        "Got a packet bigger than 'max_allowed_packet' bytes";
    1154 "08S01" ER_NET_READ_ERROR_FROM_PIPE
        "Got a read error from the connection pipe";
    1155 "08S01" ER_NET_FCNTL_ERROR Ourselves Never
        "Got an error from fcntl()";
    1156 "08S01" ER_NET_PACKETS_OUT_OF_ORDER
        "Got packets out of order";
    1157 "08S01" ER_NET_UNCOMPRESS_ERROR
        "Couldn't uncompress communication packet";
    1158 "08S01" ER_NET_READ_ERROR
        "Got an error reading communication packets";
    1159 "08S01" ER_NET_READ_INTERRUPTED Client IfRead
        "Got timeout reading communication packets";
    1160 "08S01" ER_NET_ERROR_ON_WRITE
        "Got an error writing communication packets";
    1161 "08S01" ER_NET_WRITE_INTERRUPTED
        "Got timeout writing communication packets";
    1162 "42000" ER_TOO_LONG_STRING
        "Result string is longer than 'max_allowed_packet' bytes";
    1163 "42000" ER_TABLE_CANT_HANDLE_BLOB
        "Storage engine %s doesn't support BLOB/TEXT columns";
    1164 "42000" ER_TABLE_CANT_HANDLE_AUTO_INCREMENT
        "Storage engine %s doesn't support AUTO_INCREMENT columns";
    1166 "42000" ER_WRONG_COLUMN_NAME
        "Incorrect column name '%-.100s'";
    1167 "42000" ER_WRONG_KEY_COLUMN
        "The storage engine %s can't index column %`s";
    1169 "23000" ER_DUP_UNIQUE
        "Can't write, because of unique constraint, to table '%-.192s'";
    1170 "42000" ER_BLOB_KEY_WITHOUT_LENGTH
        "BLOB/TEXT column '%-.192s' used in key specification without a key length";
    1171 "42000" ER_PRIMARY_CANT_HAVE_NULL
        "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE \
         instead";
    1172 "42000" ER_TOO_MANY_ROWS
        "Result consisted of more than one row";
    1173 "42000" ER_REQUIRES_PRIMARY_KEY
        "This table type requires a primary key";
    1175 "HY000" ER_UPDATE_WITHOUT_KEY_IN_SAFE_MODE
        "You are using safe update mode and you tried to update a table without a WHERE that \
         uses a KEY column";
    1176 "42000" ER_KEY_DOES_NOT_EXISTS
        "Key '%-.192s' doesn't exist in table '%-.192s'";
    1177 "42000" ER_CHECK_NO_SUCH_TABLE
        "Can't open table";
    1178 "42000" ER_CHECK_NOT_IMPLEMENTED
        "The storage engine for the table doesn't support %s";
    1179 "25000" ER_CANT_DO_THIS_DURING_AN_TRANSACTION
        "You are not allowed to execute this command in a transaction";
    1180 "HY000" ER_ERROR_DURING_COMMIT Ourselves Never
        "Got error %M during COMMIT";
    1181 "HY000" ER_ERROR_DURING_ROLLBACK Ourselves Never
        "Got error %M during ROLLBACK";
    1182 "HY000" ER_ERROR_DURING_FLUSH_LOGS Ourselves Never
        "Got error %M during FLUSH_LOGS";
    1183 "HY000" ER_ERROR_DURING_CHECKPOINT Ourselves Never
        "Got error %M during CHECKPOINT";
    1184 "08S01" ER_NEW_ABORTING_CONNECTION
        "Aborted connection %lld to db: '%-.192s' user: '%-.48s' host: '%-.64s'%-.64s (%-.64s)";
    1192 "HY000" ER_LOCK_OR_ACTIVE_TRANSACTION
        "Can't execute the given command because you have active locked tables or an active \
         transaction";
    1193 "HY000" ER_UNKNOWN_SYSTEM_VARIABLE
        "Unknown system variable '%-.*s'";
    1196 "HY000" ER_WARNING_NOT_COMPLETE_ROLLBACK
        "Some non-transactional changed tables couldn't be rolled back";
    1203 "42000" ER_TOO_MANY_USER_CONNECTIONS
        "User %-.64s already has more than 'max_user_connections' active connections";
    1204 "HY000" ER_SET_CONSTANTS_ONLY
        "You may only use constant expressions in this statement";
    1205 "HY000" ER_LOCK_WAIT_TIMEOUT Client Now
        "Lock wait timeout exceeded; try restarting transaction";
    1206 "HY000" ER_LOCK_TABLE_FULL Ourselves Never
        "The total number of locks exceeds the lock table size";
    1207 "25000" ER_READ_ONLY_TRANSACTION
        "Update locks cannot be acquired during a READ UNCOMMITTED transaction";
    1210 "HY000" ER_WRONG_ARGUMENTS
        "Incorrect arguments to %s";
    1211 "42000" ER_NO_PERMISSION_TO_CREATE_USER
        "'%s'@'%s' is not allowed to create new users";
    1213 "40001" ER_LOCK_DEADLOCK Client Now
        "Deadlock found when trying to get lock; try restarting transaction";
    1214 "HY000" ER_TABLE_CANT_HANDLE_FT
        "The storage engine %s doesn't support FULLTEXT indexes";
    1215 "HY000" ER_CANNOT_ADD_FOREIGN
        "Cannot add foreign key constraint for `%s`";
    1216 "23000" ER_NO_REFERENCED_ROW
        "Cannot add or update a child row: a foreign key constraint fails";
    1217 "23000" ER_ROW_IS_REFERENCED
        "Cannot delete or update a parent row: a foreign key constraint fails";
    1220 "HY000" ER_ERROR_WHEN_EXECUTING_COMMAND
        "Error when executing command %s: %-.128s";
    1221 "HY000" ER_WRONG_USAGE
        "Incorrect usage of %s and %s";
    1222 "21000" ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT
        "The used SELECT statements have a different number of columns";
    1223 "HY000" ER_CANT_UPDATE_WITH_READLOCK
        "Can't execute the query because you have a conflicting read lock";
    1224 "HY000" ER_MIXING_NOT_ALLOWED
        "Mixing of transactional and non-transactional tables is disabled";
    1225 "HY000" ER_DUP_ARGUMENT
        "Option '%s' used twice in statement";
    1226 "42000" ER_USER_LIMIT_REACHED
        "User '%-.64s' has exceeded the '%s' resource (current value: %ld)";
    1227 "42000" ER_SPECIFIC_ACCESS_DENIED_ERROR
        "Access denied; you need (at least one of) the %-.128s privilege(s) for this operation";
    1228 "HY000" ER_LOCAL_VARIABLE
        "Variable '%-.64s' is a SESSION variable and can't be used with SET GLOBAL";
    1229 "HY000" ER_GLOBAL_VARIABLE
        "Variable '%-.64s' is a GLOBAL variable and should be set with SET GLOBAL";
    1230 "42000" ER_NO_DEFAULT
        "Variable '%-.64s' doesn't have a default value";
    1231 "42000" ER_WRONG_VALUE_FOR_VAR
        "Variable '%-.64s' can't be set to the value of '%-.200T'";
    1232 "42000" ER_WRONG_TYPE_FOR_VAR
        "Incorrect argument type to variable '%-.64s'";
    1233 "HY000" ER_VAR_CANT_BE_READ
        "Variable '%-.64s' can only be set, not read";
    1234 "42000" ER_CANT_USE_OPTION_HERE
        "Incorrect usage/placement of '%s'";
    1235 "42000" ER_NOT_SUPPORTED_YET
        "This version of MariaDB doesn't yet support '%s'";
    1238 "HY000" ER_INCORRECT_GLOBAL_LOCAL_VAR
        "Variable '%-.192s' is a %s variable";
    1239 "42000" ER_WRONG_FK_DEF
        "Incorrect foreign key definition for '%-.192s': %s";
    1240 "HY000" ER_KEY_REF_DO_NOT_MATCH_TABLE_REF
        "Key reference and table reference don't match";
    1241 "21000" ER_OPERAND_COLUMNS
        "Operand should contain %d column(s)";
    1242 "21000" ER_SUBQUERY_NO_1_ROW
        "Subquery returns more than 1 row";
    1243 "HY000" ER_UNKNOWN_STMT_HANDLER
        "Unknown prepared statement handler (%.*s) given to %s";
    1245 "HY000" ER_CYCLIC_REFERENCE
        "Cyclic reference on subqueries";
    1246 "HY000" ER_AUTO_CONVERT
        "Converting column '%s' from %s to %s";
    1247 "42S22" ER_ILLEGAL_REFERENCE
        "Reference '%-.64s' not supported (%s)";
    1248 "42000" ER_DERIVED_MUST_HAVE_ALIAS
        "Every derived table must have its own alias";
    1250 "42000" ER_TABLENAME_NOT_ALLOWED_HERE
        "Table '%-.192s' from one of the SELECTs cannot be used in %-.32s";
    1251 "08004" ER_NOT_SUPPORTED_AUTH_MODE
        "Client does not support authentication protocol requested by server; consider upgrading \
         MariaDB client";
    1253 "42000" ER_COLLATION_CHARSET_MISMATCH
        "COLLATION '%s' is not valid for CHARACTER SET '%s'";
    1256 "HY000" ER_TOO_BIG_FOR_UNCOMPRESS
        "Uncompressed data size too large; the maximum size is %d (probably, length of \
         uncompressed data was corrupted)";
    1257 "HY000" ER_ZLIB_Z_MEM_ERROR Ourselves Never
        "ZLIB: Not enough memory";
    1258 "HY000" ER_ZLIB_Z_BUF_ERROR
        "ZLIB: Not enough room in the output buffer (probably, length of uncompressed data was \
         corrupted)";
    1259 "HY000" ER_ZLIB_Z_DATA_ERROR
        "ZLIB: Input data corrupted";
    1260 "HY000" ER_CUT_VALUE_GROUP_CONCAT
        "Row %u was cut by %s)";
    1261 "01000" ER_WARN_TOO_FEW_RECORDS
        "Row %lu doesn't contain data for all columns";
    1262 "01000" ER_WARN_TOO_MANY_RECORDS
        "Row %lu was truncated; it contained more data than there were input columns";
    1263 "22004" ER_WARN_NULL_TO_NOTNULL
        "Column set to default value; NULL supplied to NOT NULL column '%s' at row %lu";
    1264 "22003" ER_WARN_DATA_OUT_OF_RANGE
        "Out of range value for column '%s' at row %lu";
    1265 "01000" WARN_DATA_TRUNCATED
        "Data truncated for column '%s' at row %lu";
    1266 "HY000" ER_WARN_USING_OTHER_HANDLER
        "Using storage engine %s for table '%s'";
    1267 "HY000" ER_CANT_AGGREGATE_2COLLATIONS
        "Illegal mix of collations (%s,%s) and (%s,%s) for operation '%s'";
    1268 "HY000" ER_DROP_USER
        "Cannot drop one or more of the requested users";
    1269 "HY000" ER_REVOKE_GRANTS
        "Can't revoke all privileges for one or more of the requested users";
    1270 "HY000" ER_CANT_AGGREGATE_3COLLATIONS
        "Illegal mix of collations (%s,%s), (%s,%s), (%s,%s) for operation '%s'";
    1271 "HY000" ER_CANT_AGGREGATE_NCOLLATIONS
        "Illegal mix of collations for operation '%s'";
    1272 "HY000" ER_VARIABLE_IS_NOT_STRUCT
        "Variable '%-.64s' is not a variable component (can't be used as XXXX.variable_name)";
    1273 "HY000" ER_UNKNOWN_COLLATION
        "Unknown collation: '%-.64s'";
    1275 "HY000" ER_SERVER_IS_IN_SECURE_AUTH_MODE
        "Server is running in --secure-auth mode, but '%s'@'%s' has a password in the old \
         format; please change the password to the new format";
    1276 "HY000" ER_WARN_FIELD_RESOLVED
        "Field or reference '%-.192s%s%-.192s%s%-.192s' of SELECT #%d was resolved in SELECT #%d";
    1280 "42000" ER_WRONG_NAME_FOR_INDEX
        "Incorrect index name '%-.100s'";
    1281 "42000" ER_WRONG_NAME_FOR_CATALOG
        "Incorrect catalog name '%-.100s'";
    1285 "HY000" ER_WARN_HOSTNAME_WONT_WORK
        "MariaDB is started in --skip-name-resolve mode; you must restart it without this switch \
         for this grant to work";
    1286 "42000" ER_UNKNOWN_STORAGE_ENGINE
        "Unknown storage engine '%s'";
    1287 "HY000" ER_WARN_DEPRECATED_SYNTAX
        "'%s' is deprecated and will be removed in a future release. Please use %s instead";
    1288 "HY000" ER_NON_UPDATABLE_TABLE
        "The target table %-.100s of the %s is not updatable";
    1289 "HY000" ER_FEATURE_DISABLED
        "The '%s' feature is disabled; you need MariaDB built with '%s' to have it working";
    1290 "HY000" ER_OPTION_PREVENTS_STATEMENT
        "The MariaDB server is running with the %s option so it cannot execute this statement";
    1291 "HY000" ER_DUPLICATED_VALUE_IN_TYPE
        "Column '%-.100s' has duplicated value '%-.64s' in %s";
    1292 "22007" ER_TRUNCATED_WRONG_VALUE
        "Truncated incorrect %-.32T value: '%-.128T'";
    1293 "HY000" ER_TOO_MUCH_AUTO_TIMESTAMP_COLS
        "Incorrect table definition; there can be only one TIMESTAMP column with \
         CURRENT_TIMESTAMP in DEFAULT or ON UPDATE clause";
    1294 "HY000" ER_INVALID_ON_UPDATE
        "Invalid ON UPDATE clause for '%-.192s' column";
    1295 "HY000" ER_UNSUPPORTED_PS
        "This command is not supported in the prepared statement protocol yet";
    1296 "HY000" ER_GET_ERRMSG Ourselves Never
        "Got error %d '%-.200s' from %s";
    1298 "HY000" ER_UNKNOWN_TIME_ZONE
        "Unknown or incorrect time zone: '%-.64s'";
    1299 "HY000" ER_WARN_INVALID_TIMESTAMP
        "Invalid TIMESTAMP value in column '%s' at row %lu";
    1300 "HY000" ER_INVALID_CHARACTER_STRING
        "Invalid %s character string: '%.64T'";
    1301 "HY000" ER_WARN_ALLOWED_PACKET_OVERFLOWED
        "Result of %s() was larger than max_allowed_packet (%ld) - truncated";
    1302 "HY000" ER_CONFLICTING_DECLARATIONS
        "Conflicting declarations: '%s%s' and '%s%s'";
    1303 "2F003" ER_SP_NO_RECURSIVE_CREATE
        "Can't create a %s from within another stored routine";
    1304 "42000" ER_SP_ALREADY_EXISTS
        "%s %s already exists";
    1305 "42000" ER_SP_DOES_NOT_EXIST
        "%s %s does not exist";
    1306 "HY000" ER_SP_DROP_FAILED Ourselves Never
        "Failed to DROP %s %s";
    1307 "HY000" ER_SP_STORE_FAILED Ourselves Never
        "Failed to CREATE %s %s";
    1308 "42000" ER_SP_LILABEL_MISMATCH
        "%s with no matching label: %s";
    1309 "42000" ER_SP_LABEL_REDEFINE
        "Redefining label %s";
    1310 "42000" ER_SP_LABEL_MISMATCH
        "End-label %s without match";
    1312 "0A000" ER_SP_BADSELECT
        "PROCEDURE %s can't return a result set in the given context";
    1313 "42000" ER_SP_BADRETURN
        "RETURN is only allowed in a FUNCTION";
    1314 "0A000" ER_SP_BADSTATEMENT
        "%s is not allowed in stored procedures";
    1317 "70100" ER_QUERY_INTERRUPTED
        "Query execution was interrupted";
    1318 "42000" ER_SP_WRONG_NO_OF_ARGS
        "Incorrect number of arguments for %s %s; expected %u, got %u";
    1319 "42000" ER_SP_COND_MISMATCH
        "Undefined CONDITION: %s";
    1320 "42000" ER_SP_NORETURN
        "No RETURN found in FUNCTION %s";
    1321 "2F005" ER_SP_NORETURNEND
        "FUNCTION %s ended without RETURN";
    1322 "42000" ER_SP_BAD_CURSOR_QUERY
        "Cursor statement must be a SELECT";
    1323 "42000" ER_SP_BAD_CURSOR_SELECT
        "Cursor SELECT must not have INTO";
    1324 "42000" ER_SP_CURSOR_MISMATCH
        "Undefined CURSOR: %s";
    1325 "24000" ER_SP_CURSOR_ALREADY_OPEN
        "Cursor is already open";
    1326 "24000" ER_SP_CURSOR_NOT_OPEN
        "Cursor is not open";
    1327 "42000" ER_SP_UNDECLARED_VAR
        "Undeclared variable: %s";
    1328 "HY000" ER_SP_WRONG_NO_OF_FETCH_ARGS
        "Incorrect number of FETCH variables";
    1329 "02000" ER_SP_FETCH_NO_DATA
        "No data - zero rows fetched, selected, or processed";
    1330 "42000" ER_SP_DUP_PARAM
        "Duplicate parameter: %s";
    1331 "42000" ER_SP_DUP_VAR
        "Duplicate variable: %s";
    1332 "42000" ER_SP_DUP_COND
        "Duplicate condition: %s";
    1333 "42000" ER_SP_DUP_CURS
        "Duplicate cursor: %s";
    1336 "0A000" ER_STMT_NOT_ALLOWED_IN_SF_OR_TRG
        "%s is not allowed in stored function or trigger";
    1337 "42000" ER_SP_VARCOND_AFTER_CURSHNDLR
        "Variable or condition declaration after cursor or handler declaration";
    1338 "42000" ER_SP_CURSOR_AFTER_HANDLER
        "Cursor declaration after handler declaration";
    1339 "20000" ER_SP_CASE_NOT_FOUND
        "Case not found for CASE statement";
    1345 "HY000" ER_VIEW_NO_EXPLAIN
        "ANALYZE/EXPLAIN/SHOW can not be issued; lacking privileges for underlying table";
    1347 "HY000" ER_WRONG_OBJECT
        "'%-.192s.%-.192s' is not of type '%s'";
    1348 "HY000" ER_NONUPDATEABLE_COLUMN
        "Column '%-.192s' is not updatable";
    1350 "HY000" ER_VIEW_SELECT_CLAUSE
        "View's SELECT contains a '%s' clause";
    1351 "HY000" ER_VIEW_SELECT_VARIABLE
        "View's SELECT contains a variable or parameter";
    1352 "HY000" ER_VIEW_SELECT_TMPTABLE
        "View's SELECT refers to a temporary table '%-.192s'";
    1353 "HY000" ER_VIEW_WRONG_LIST
        "View's SELECT and view's field list have different column counts";
    1356 "HY000" ER_VIEW_INVALID
        "View '%-.192s.%-.192s' references invalid table(s) or column(s) or function(s) or \
         definer/invoker of view lack rights to use them";
    1357 "HY000" ER_SP_NO_DROP_SP
        "Can't drop or alter a %s from within another stored routine";
    1359 "HY000" ER_TRG_ALREADY_EXISTS
        "Trigger '%s' already exists";
    1360 "HY000" ER_TRG_DOES_NOT_EXIST
        "Trigger does not exist";
    1362 "HY000" ER_TRG_CANT_CHANGE_ROW
        "Updating of %s row is not allowed in %strigger";
    1363 "HY000" ER_TRG_NO_SUCH_ROW_IN_TRG
        "There is no %s row in %s trigger";
    1364 "HY000" ER_NO_DEFAULT_FOR_FIELD
        "Field '%-.192s' doesn't have a default value";
    1365 "22012" ER_DIVISION_BY_ZERO
        "Division by 0";
    1366 "22007" ER_TRUNCATED_WRONG_VALUE_FOR_FIELD
        "Incorrect %-.32s value: '%-.128T' for column `%.192s`.`%.192s`.`%.192s` at row %lu";
    1367 "22007" ER_ILLEGAL_VALUE_FOR_TYPE
        "Illegal %s '%-.192T' value found during parsing";
    1368 "HY000" ER_VIEW_NONUPD_CHECK
        "CHECK OPTION on non-updatable view %`-.192s.%`-.192s";
    1369 "44000" ER_VIEW_CHECK_FAILED
        "CHECK OPTION failed %`-.192s.%`-.192s";
    1370 "42000" ER_PROCACCESS_DENIED_ERROR
        "%-.32s command denied to user '%s'@'%s' for routine '%-.192s'";
    1372 "HY000" ER_PASSWD_LENGTH
        "Password hash should be a %d-digit hexadecimal number";
    1381 "HY000" ER_NO_BINARY_LOGGING
        "You are not using binary logging";
    1382 "HY000" ER_RESERVED_SYNTAX
        "The '%-.64s' syntax is reserved for purposes internal to the MariaDB server";
    1390 "HY000" ER_PS_MANY_PARAM
        "Prepared statement contains too many placeholders";
    1391 "HY000" ER_KEY_PART_0
        "Key part '%-.192s' length cannot be 0";
    1393 "HY000" ER_VIEW_MULTIUPDATE
        "Can not modify more than one base table through a join view '%-.192s.%-.192s'";
    1394 "HY000" ER_VIEW_NO_INSERT_FIELD_LIST
        "Can not insert into join view '%-.192s.%-.192s' without fields list";
    1395 "HY000" ER_VIEW_DELETE_MERGE_VIEW
        "Can not delete from join view '%-.192s.%-.192s'";
    1396 "HY000" ER_CANNOT_USER
        "Operation %s failed for %.256s";
    1397 "XAE04" ER_XAER_NOTA
        "XAER_NOTA: Unknown XID";
    1398 "XAE05" ER_XAER_INVAL
        "XAER_INVAL: Invalid arguments (or unsupported command)";
    1399 "XAE07" ER_XAER_RMFAIL
        "XAER_RMFAIL: The command cannot be executed when global transaction is in the  %.64s \
         state";
    1400 "XAE09" ER_XAER_OUTSIDE
        "XAER_OUTSIDE: Some work is done outside global transaction";
    1401 "XAE03" ER_XAER_RMERR Ourselves Never
        "XAER_RMERR: Fatal error occurred in the transaction branch - check your data for \
         consistency";
    1402 "XA100" ER_XA_RBROLLBACK Ourselves Never
        "XA_RBROLLBACK: Transaction branch was rolled back";
    1403 "42000" ER_NONEXISTING_PROC_GRANT
        "There is no such grant defined for user '%-.48s' on host '%-.64s' on routine '%-.192s'";
    1406 "22001" ER_DATA_TOO_LONG
        "Data too long for column '%s' at row %lu";
    1407 "42000" ER_SP_BAD_SQLSTATE
        "Bad SQLSTATE: '%s'";
    1410 "42000" ER_CANT_CREATE_USER_WITH_GRANT
        "You are not allowed to create a user with GRANT";
    1411 "HY000" ER_WRONG_VALUE_FOR_TYPE
        "Incorrect %-.32s value: '%-.128T' for function %-.32s";
    1412 "HY000" ER_TABLE_DEF_CHANGED Ourselves Never
        "Table definition has changed, please retry transaction";
    1413 "42000" ER_SP_DUP_HANDLER
        "Duplicate handler declared in the same block";
    1414 "42000" ER_SP_NOT_VAR_ARG
        "OUT or INOUT argument %d for routine %s is not a variable or NEW pseudo-variable in \
         BEFORE trigger";
    1415 "0A000" ER_SP_NO_RETSET
        "Not allowed to return a result set from a %s";
    1416 "22003" ER_CANT_CREATE_GEOMETRY_OBJECT
        "Cannot get geometry object from data you send to the GEOMETRY field";
    1420 "HY000" ER_EXEC_STMT_WITH_OPEN_CURSOR
        "You can't execute a prepared statement which has an open cursor associated with it. \
         Reset the statement to re-execute it";
    1421 "HY000" ER_STMT_HAS_NO_OPEN_CURSOR
        "The statement (%lu) has no open cursor";
    1422 "HY000" ER_COMMIT_NOT_ALLOWED_IN_SF_OR_TRG
        "Explicit or implicit commit is not allowed in stored function or trigger";
    1423 "HY000" ER_NO_DEFAULT_FOR_VIEW_FIELD
        "Field of view '%-.192s.%-.192s' underlying table doesn't have a default value";
    1424 "HY000" ER_SP_NO_RECURSION
        "Recursive stored functions and triggers are not allowed";
    1425 "42000" ER_TOO_BIG_SCALE
        "Too big scale specified for '%-.192s'. Maximum is %u";
    1426 "42000" ER_TOO_BIG_PRECISION
        "Too big precision specified for '%-.192s'. Maximum is %u";
    1427 "42000" ER_M_BIGGER_THAN_D
        "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '%-.192s')";
    1428 "HY000" ER_WRONG_LOCK_OF_SYSTEM_TABLE
        "You can't combine write-locking of system tables with other tables or lock types";
    1429 "HY000" ER_CONNECT_TO_FOREIGN_DATA_SOURCE Server Now
        "Unable to connect to foreign data source: %.64s";
    1436 "HY000" ER_STACK_OVERRUN_NEED_MORE
        "Thread stack overrun:  %ld bytes used of a %ld byte stack, and %ld bytes needed. \
         Consider increasing the thread_stack system variable.";
    1437 "42000" ER_TOO_LONG_BODY
        "Routine body for '%-.100s' is too long";
    1439 "42000" ER_TOO_BIG_DISPLAYWIDTH
        "Display width out of range for '%-.192s' (max = %lu)";
    1440 "XAE08" ER_XAER_DUPID
        "XAER_DUPID: The XID already exists";
    1441 "22008" ER_DATETIME_FUNCTION_OVERFLOW
        "Datetime function: %-.32s field overflow";
    1442 "HY000" ER_CANT_UPDATE_USED_TABLE_IN_SF_OR_TRG
        "Can't update table '%-.192s' in stored function/trigger because it is already used by \
         statement which invoked this stored function/trigger";
    1445 "HY000" ER_SP_CANT_SET_AUTOCOMMIT
        "Not allowed to set autocommit from a stored function or trigger";
    1446 "0L000" ER_MALFORMED_DEFINER
        "Invalid definer";
    1449 "HY000" ER_NO_SUCH_USER
        "The user specified as a definer ('%-.64s'@'%-.64s') does not exist";
    1450 "HY000" ER_FORBID_SCHEMA_CHANGE
        "Changing schema from '%-.192s' to '%-.192s' is not allowed";
    1451 "23000" ER_ROW_IS_REFERENCED_2
        "Cannot delete or update a parent row: a foreign key constraint fails (%s)";
    1452 "23000" ER_NO_REFERENCED_ROW_2
        "Cannot add or update a child row: a foreign key constraint fails (%s)";
    1456 "HY000" ER_SP_RECURSION_LIMIT
        "Recursive limit %d (as set by the max_sp_recursion_depth variable) was exceeded for \
         routine %.192s";
    1458 "42000" ER_SP_WRONG_NAME
        "Incorrect routine name '%-.192s'";
    1459 "HY000" ER_TABLE_NEEDS_UPGRADE Ourselves Never
        "Upgrade required. Please do \"REPAIR %s %`s\" or dump/reload to fix it!";
    1460 "42000" ER_SP_NO_AGGREGATE
        "AGGREGATE is not supported for stored functions";
    1461 "42000" ER_MAX_PREPARED_STMT_COUNT_REACHED Ourselves Never
        "Can't create more than max_prepared_stmt_count statements (current value: %u)";
    1462 "HY000" ER_VIEW_RECURSIVE
        "%`s.%`s contains view recursion";
    1463 "42000" ER_NON_GROUPING_FIELD_USED
        "Non-grouping field '%-.192s' is used in %-.64s clause";
    1467 "HY000" ER_AUTOINC_READ_FAILED
        "Failed to read auto-increment value from storage engine";
    1470 "HY000" ER_WRONG_STRING_LENGTH
        "String '%-.70T' is too long for %s (should be no longer than %d)";
    1471 "HY000" ER_NON_INSERTABLE_TABLE
        "The target table %-.100s of the %s is not insertable-into";
    1472 "HY000" ER_ADMIN_WRONG_MRG_TABLE
        "Table '%-.64s' is differently defined or of non-MyISAM type or doesn't exist";
    1473 "HY000" ER_TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT
        "Too high level of nesting for select";
    1474 "HY000" ER_NAME_BECOMES_EMPTY
        "Name '%-.64s' has become ''";
    1475 "HY000" ER_AMBIGUOUS_FIELD_TERM
        "First character of the FIELDS TERMINATED string is ambiguous; please use non-optional \
         and non-empty FIELDS ENCLOSED BY";
    1476 "HY000" ER_FOREIGN_SERVER_EXISTS
        "Cannot create foreign server '%s' as it already exists";
    1477 "HY000" ER_FOREIGN_SERVER_DOESNT_EXIST
        "The foreign server name you are trying to reference does not exist. Data source error:  \
         %-.64s";
    1478 "HY000" ER_ILLEGAL_HA_CREATE_OPTION
        "Table storage engine '%-.64s' does not support the create option '%.64s'";
    1481 "HY000" ER_PARTITION_MAXVALUE_ERROR
        "MAXVALUE can only be used in last partition definition";
    1487 "HY000" ER_NOT_CONSTANT_EXPRESSION
        "Expression in %s must be constant";
    1492 "HY000" ER_PARTITIONS_MUST_BE_DEFINED_ERROR
        "For %-.64s partitions each partition must be defined";
    1493 "HY000" ER_RANGE_NOT_INCREASING_ERROR
        "VALUES LESS THAN value must be strictly increasing for each partition";
    1499 "HY000" ER_TOO_MANY_PARTITIONS_ERROR
        "Too many partitions (including subpartitions) were defined";
    1503 "HY000" ER_UNIQUE_KEY_NEED_ALL_FIELDS_IN_PF
        "A %-.192s must include all columns in the table's partitioning function";
    1505 "HY000" ER_PARTITION_MGMT_ON_NONPARTITIONED
        "Partition management on a not partitioned table is not possible";
    1506 "HY000" ER_FEATURE_NOT_SUPPORTED_WITH_PARTITIONING
        "Partitioned tables do not support %s";
    1507 "HY000" ER_PARTITION_DOES_NOT_EXIST
        "Wrong partition name or partition list";
    1508 "HY000" ER_DROP_LAST_PARTITION
        "Cannot remove all partitions, use DROP TABLE instead";
    1524 "HY000" ER_PLUGIN_IS_NOT_LOADED
        "Plugin '%-.192s' is not loaded";
    1525 "HY000" ER_WRONG_VALUE
        "Incorrect %-.32s value: '%-.128T'";
    1526 "HY000" ER_NO_PARTITION_FOR_GIVEN_VALUE
        "Table has no partition for value %-.64s";
    1531 "HY000" ER_WRONG_SIZE_NUMBER
        "A size parameter was incorrectly specified, either number or on the form 10M";
    1539 "HY000" ER_EVENT_DOES_NOT_EXIST
        "Unknown event '%-.192s'";
    1553 "HY000" ER_DROP_INDEX_FK
        "Cannot drop index '%-.192s': needed in a foreign key constraint";
    1554 "HY000" ER_WARN_DEPRECATED_SYNTAX_WITH_VER
        "The syntax '%s' is deprecated and will be removed in MariaDB %s. Please use %s instead";
    1558 "HY000" ER_COL_COUNT_DOESNT_MATCH_PLEASE_UPDATE
        "Column count of mysql.%s is wrong. Expected %d, found %d. Created with MariaDB %d, now \
         running %d. Please use mariadb-upgrade to fix this error";
    1564 "HY000" ER_PARTITION_FUNCTION_IS_NOT_ALLOWED
        "This partition function is not allowed";
    1567 "HY000" ER_WRONG_PARTITION_NAME
        "Incorrect partition name";
    1568 "25001" ER_CANT_CHANGE_TX_CHARACTERISTICS
        "Transaction characteristics can't be changed while a transaction is in progress";
    1569 "HY000" ER_DUP_ENTRY_AUTOINCREMENT_CASE
        "ALTER TABLE causes auto_increment resequencing, resulting in duplicate entry '%-.192T' \
         for key '%-.192s'";
    1575 "HY000" ER_BASE64_DECODE_ERROR
        "Decoding of base64 string failed";
    1578 "HY000" ER_ONLY_INTEGERS_ALLOWED
        "Only integers allowed as number here";
    1582 "42000" ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT
        "Incorrect parameter count in the call to native function '%-.192s'";
    1583 "42000" ER_WRONG_PARAMETERS_TO_NATIVE_FCT
        "Incorrect parameters in the call to native function '%-.192s'";
    1584 "42000" ER_WRONG_PARAMETERS_TO_STORED_FCT
        "Incorrect parameters in the call to stored function '%-.192s'";
    1585 "HY000" ER_NATIVE_FCT_NAME_COLLISION
        "This function '%-.192s' has the same name as a native function";
    1586 "23000" ER_DUP_ENTRY_WITH_KEY_NAME
        "Duplicate entry '%-.64T' for key '%-.192s'";
    1611 "HY000" ER_LOAD_DATA_INVALID_COLUMN
        "Invalid column reference (%-.64s) in LOAD DATA";
    1613 "XA106" ER_XA_RBTIMEOUT Ourselves Never
        "XA_RBTIMEOUT: Transaction branch was rolled back: took too long";
    1614 "XA102" ER_XA_RBDEADLOCK Ourselves Never
        "XA_RBDEADLOCK: Transaction branch was rolled back: deadlock was detected";
    1615 "HY000" ER_NEED_REPREPARE Ourselves Now
        "Prepared statement needs to be re-prepared";
    1618 "HY000" WARN_OPTION_IGNORED
        "<%-.64s> option ignored";
    1621 "HY000" ER_VARIABLE_IS_READONLY
        "%s variable '%s' is read-only. Use SET %s to assign the value";
    1622 "HY000" ER_WARN_ENGINE_TRANSACTION_ROLLBACK
        "Storage engine %s does not support rollback for this statement. Transaction rolled back \
         and must be restarted";
    1628 "HY000" ER_TOO_LONG_TABLE_COMMENT
        "Comment for table '%-.64s' is too long (max = %u)";
    1629 "HY000" ER_TOO_LONG_FIELD_COMMENT
        "Comment for field '%-.64s' is too long (max = %u)";
    1630 "42000" ER_FUNC_INEXISTENT_NAME_COLLISION
        "FUNCTION %s does not exist. Check the 'Function Name Parsing and Resolution' section in \
         the Reference Manual";
    1637 "HY000" ER_TOO_MANY_CONCURRENT_TRXS Ourselves Never
        "Too many active concurrent transactions";
    1641 "42000" ER_DUP_SIGNAL_SET
        "Duplicate condition information item '%s'";
    1642 "01000" ER_SIGNAL_WARN
        "Unhandled user-defined warning condition";
    1643 "02000" ER_SIGNAL_NOT_FOUND
        "Unhandled user-defined not found condition";
    1644 "HY000" ER_SIGNAL_EXCEPTION
        "Unhandled user-defined exception condition";
    1645 "0K000" ER_RESIGNAL_WITHOUT_ACTIVE_HANDLER
        "RESIGNAL when handler not active";
    1646 "HY000" ER_SIGNAL_BAD_CONDITION_TYPE
        "SIGNAL/RESIGNAL can only use a CONDITION defined with SQLSTATE";
    1647 "HY000" WARN_COND_ITEM_TRUNCATED
        "Data truncated for condition item '%s'";
    1648 "HY000" ER_COND_ITEM_TOO_LONG
        "Data too long for condition item '%s'";
    1649 "HY000" ER_UNKNOWN_LOCALE
        "Unknown locale: '%-.64s'";
    1681 "HY000" ER_WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT
        "'%s' is deprecated and will be removed in a future release";
    1684 "HY000" ER_WARN_I_S_SKIPPED_TABLE
        "Table '%s'.'%s' was skipped since its definition is being modified by concurrent DDL \
         statement";
    1688 "HY000" ER_TOO_LONG_INDEX_COMMENT
        "Comment for index '%-.64s' is too long (max = %lu)";
    1690 "22003" ER_DATA_OUT_OF_RANGE
        "%s value is out of range in '%s'";
    1691 "HY000" ER_WRONG_SPVAR_TYPE_IN_LIMIT
        "A variable of a non-integer based type in LIMIT clause";
    1698 "28000" ER_ACCESS_DENIED_NO_PASSWORD_ERROR
        "Access denied for user '%s'@'%s'";
    1699 "HY000" ER_SET_PASSWORD_AUTH_PLUGIN
        "SET PASSWORD is not applicable for users authenticating via %s plugin";
    1701 "42000" ER_TRUNCATE_ILLEGAL_FK
        "Cannot truncate a table referenced in a foreign key constraint (%.192s)";
    1702 "HY000" ER_PLUGIN_IS_PERMANENT
        "Plugin '%s' is force_plus_permanent and can not be unloaded";
    1706 "HY000" ER_MULTI_UPDATE_KEY_CONFLICT
        "Primary key/partition key update is not allowed since the table is updated both as \
         '%-.192s' and '%-.192s'";
    1709 "HY000" ER_INDEX_COLUMN_TOO_LONG
        "Index column size too large. The maximum column size is %lu bytes";
    1712 "HY000" ER_INDEX_CORRUPT Ourselves Never
        "Index %s is corrupted";
    1713 "HY000" ER_UNDO_RECORD_TOO_BIG
        "Undo log record is too big";
    1728 "HY000" ER_CANNOT_LOAD_FROM_TABLE_V2 Ourselves Never
        "Cannot load from %s.%s. The table is probably corrupted";
    1736 "HY000" ER_TABLES_DIFFERENT_METADATA
        "Tables have different definitions";
    1739 "HY000" ER_WARN_INDEX_NOT_APPLICABLE
        "Cannot use %-.64s access on index '%-.64s' due to type or collation conversion on field \
         '%-.64s'";
    1741 "HY000" ER_NO_SUCH_KEY_VALUE
        "Key value '%-.192s' was not found in table '%-.192s.%-.192s'";
    1742 "HY000" ER_VALUE_TOO_LONG
        "Too long value for '%s'";
    1746 "HY000" ER_CANT_UPDATE_TABLE_IN_CREATE_TABLE_SELECT
        "Can't update table '%-.192s' while '%-.192s' is being created";
    1758 "35000" ER_DA_INVALID_CONDITION_NUMBER
        "Invalid condition number";
    1759 "HY000" ER_INSECURE_PLAIN_TEXT
        "Sending passwords in plain text without SSL/TLS is extremely insecure";
    1761 "23000" ER_FOREIGN_DUPLICATE_KEY_WITH_CHILD_INFO
        "Foreign key constraint for table '%.192s', record '%-.192s' would lead to a duplicate \
         entry in table '%.192s', key '%.192s'";
    1762 "23000" ER_FOREIGN_DUPLICATE_KEY_WITHOUT_CHILD_INFO
        "Foreign key constraint for table '%.192s', record '%-.192s' would lead to a duplicate \
         entry in a child table";
    1764 "HY000" ER_TABLE_HAS_NO_FT
        "The table does not have FULLTEXT index to support this query";
    1765 "HY000" ER_VARIABLE_NOT_SETTABLE_IN_SF_OR_TRIGGER
        "The system variable %.200s cannot be set in stored functions or triggers";
    1766 "HY000" ER_VARIABLE_NOT_SETTABLE_IN_TRANSACTION
        "The system variable %.200s cannot be set when there is an ongoing transaction";
    1791 "HY000" ER_UNKNOWN_EXPLAIN_FORMAT
        "Unknown %s format name: '%s'";
    1792 "25006" ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
        "Cannot execute statement in a READ ONLY transaction";
    1800 "HY000" ER_UNKNOWN_ALTER_ALGORITHM
        "Unknown ALGORITHM '%s'";
    1801 "HY000" ER_UNKNOWN_ALTER_LOCK
        "Unknown LOCK type '%s'";
    1808 "HY000" ER_TABLE_SCHEMA_MISMATCH Ourselves Never
        "Schema mismatch (%s)";
    1812 "HY000" ER_TABLESPACE_MISSING Ourselves Never
        "Tablespace is missing for table '%-.192s'";
    1814 "HY000" ER_TABLESPACE_DISCARDED Ourselves Never
        "Tablespace has been discarded for table %`s";
    1815 "HY000" ER_INTERNAL_ERROR Ourselves Never
        "Internal error: %-.192s";
    1818 "HY000" ER_INVALID_YEAR_COLUMN_LENGTH
        "YEAR(%lu) column type is deprecated. Creating YEAR(4) column instead";
    1819 "HY000" ER_NOT_VALID_PASSWORD
        "Your password does not satisfy the current policy requirements (%s)";
    1820 "HY000" ER_MUST_CHANGE_PASSWORD
        "You must SET PASSWORD before executing this statement";
    1821 "HY000" ER_FK_NO_INDEX_CHILD
        "Failed to add the foreign key constraint. Missing index for constraint '%s' in the \
         foreign table '%s'";
    1822 "HY000" ER_FK_NO_INDEX_PARENT
        "Failed to add the foreign key constraint. Missing index for constraint '%s' in the \
         referenced table '%s'";
    1823 "HY000" ER_FK_FAIL_ADD_SYSTEM
        "Failed to add the foreign key constraint '%s' to system tables";
    1824 "HY000" ER_FK_CANNOT_OPEN_PARENT
        "Failed to open the referenced table '%s'";
    1825 "HY000" ER_FK_INCORRECT_OPTION
        "Failed to add the foreign key constraint on table '%s'. Incorrect options in FOREIGN \
         KEY constraint '%s'";
    1826 "HY000" ER_DUP_CONSTRAINT_NAME
        "Duplicate %s constraint name '%s'";
    1827 "HY000" ER_PASSWORD_FORMAT
        "The password hash doesn't have the expected format. Check if the correct password \
         algorithm is being used with the PASSWORD() function";
    1828 "HY000" ER_FK_COLUMN_CANNOT_DROP
        "Cannot drop column '%-.192s': needed in a foreign key constraint '%-.192s'";
    1829 "HY000" ER_FK_COLUMN_CANNOT_DROP_CHILD
        "Cannot drop column '%-.192s': needed in a foreign key constraint '%-.192s' of table \
         %-.192s";
    1830 "HY000" ER_FK_COLUMN_NOT_NULL
        "Column '%-.192s' cannot be NOT NULL: needed in a foreign key constraint '%-.192s' SET \
         NULL";
    1831 "HY000" ER_DUP_INDEX
        "Duplicate index %`s. This is deprecated and will be disallowed in a future release";
    1832 "HY000" ER_FK_COLUMN_CANNOT_CHANGE
        "Cannot change column '%-.192s': used in a foreign key constraint '%-.192s'";
    1833 "HY000" ER_FK_COLUMN_CANNOT_CHANGE_CHILD
        "Cannot change column '%-.192s': used in a foreign key constraint '%-.192s' of table \
         '%-.192s'";
    1834 "HY000" ER_FK_CANNOT_DELETE_PARENT
        "Cannot delete rows from table which is parent in a foreign key constraint '%-.192s' of \
         table '%-.192s'";
    1835 "HY000" ER_MALFORMED_PACKET
        "Malformed communication packet";
    1836 "HY000" ER_READ_ONLY_MODE
        "Running in read-only mode";
    1837 "HY000" ER_GTID_NEXT_TYPE_UNDEFINED_GROUP
        "When GTID_NEXT is set to a GTID, you must explicitly set it again after a COMMIT or \
         ROLLBACK. If you see this error message in the slave SQL thread, it means that a table \
         in the current transaction is transactional on the master and non-transactional on the \
         slave. In a client connection, it means that you executed SET GTID_NEXT before a \
         transaction and forgot to set GTID_NEXT to a different identifier or to 'AUTOMATIC' \
         after COMMIT or ROLLBACK. Current GTID_NEXT is '%s'";
    1838 "HY000" ER_VARIABLE_NOT_SETTABLE_IN_SP
        "The system variable %.200s cannot be set in stored procedures";
    1845 "0A000" ER_ALTER_OPERATION_NOT_SUPPORTED
        "%s is not supported for this operation. Try %s";
    1846 "0A000" ER_ALTER_OPERATION_NOT_SUPPORTED_REASON
        "%s is not supported. Reason: %s. Try %s";
    1847 "HY000" ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_COPY
        "COPY algorithm requires a lock";
    1850 "HY000" ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_COLUMN_TYPE
        "Cannot change column type";
    1853 "HY000" ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_NOPK
        "Dropping a primary key is not allowed without also adding a new primary key";
    1854 "HY000" ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_AUTOINC
        "Adding an auto-increment column requires a lock";
    1859 "23000" ER_DUP_UNKNOWN_IN_INDEX
        "Duplicate entry for key '%-.192s'";
    1860 "HY000" ER_IDENT_CAUSES_TOO_LONG_PATH
        "Long database name and identifier for object resulted in path length exceeding %d \
         characters. Path: '%s'";
    1861 "HY000" ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_NOT_NULL
        "cannot convert NULL to non-constant DEFAULT";
    1862 "HY000" ER_MUST_CHANGE_PASSWORD_LOGIN
        "Your password has expired. To log in you must change it using a client that supports \
         expired passwords";
    1869 "HY000" ER_AUTO_INCREMENT_CONFLICT
        "Auto-increment value in UPDATE conflicts with internally generated values";
    1873 "28000" ER_ACCESS_DENIED_CHANGE_USER_ERROR
        "Access denied trying to change to user '%-.48s'@'%-.64s' (using password: %s). \
         Disconnecting";
    1877 "HY000" ER_TABLE_CORRUPT Ourselves Never
        "Operation cannot be performed. The table '%-.64s.%-.64s' is missing, corrupt or \
         contains bad data";
    1878 "HY000" ER_TEMP_FILE_WRITE_FAILURE Ourselves Never
        "Temporary file write failure";
    1901 "HY000" ER_GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED
        "Function or expression '%s' cannot be used in the %s clause of %`s";
    1903 "HY000" ER_PRIMARY_KEY_BASED_ON_GENERATED_COLUMN
        "Primary key cannot be defined upon a generated column";
    1904 "HY000" ER_KEY_BASED_ON_GENERATED_VIRTUAL_COLUMN
        "Key/Index cannot be defined on a virtual generated column";
    1905 "HY000" ER_WRONG_FK_OPTION_FOR_GENERATED_COLUMN
        "Cannot define foreign key with %s clause on a generated column";
    1906 "HY000" ER_WARNING_NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN
        "The value specified for generated column '%s' in table '%s' has been ignored";
    1907 "HY000" ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN
        "This is not yet supported for generated columns";
    1910 "HY000" ER_UNSUPPORTED_ENGINE_FOR_GENERATED_COLUMNS
        "%s storage engine does not support generated columns";
    1911 "HY000" ER_UNKNOWN_OPTION
        "Unknown option '%-.64s'";
    1912 "HY000" ER_BAD_OPTION_VALUE
        "Incorrect value '%-.64T' for option '%-.64s'";
    1916 "22003" ER_DATA_OVERFLOW
        "Got overflow when converting '%-.128s' to %-.32s. Value truncated";
    1917 "22003" ER_DATA_TRUNCATED
        "Truncated value '%-.128s' when converting to %-.32s";
    1918 "22007" ER_BAD_DATA
        "Encountered illegal value '%-.128s' when converting to %-.32s";
    1926 "HY000" ER_VIEW_ORDERBY_IGNORED
        "View '%-.192s'.'%-.192s' ORDER BY clause ignored because there is other ORDER BY clause \
         already";
    1927 "70100" ER_CONNECTION_KILLED
        "Connection was killed";
    1931 "HY000" ER_QUERY_RESULT_INCOMPLETE
        "Query execution was interrupted. The query exceeded %s %llu. The query result may be \
         incomplete";
    1932 "42S02" ER_NO_SUCH_TABLE_IN_ENGINE Ourselves Never
        "Table '%-.192s.%-.192s' doesn't exist in engine";
    1933 "HY000" ER_TARGET_NOT_EXPLAINABLE
        "Target is not executing an operation with a query plan";
    1957 "HY000" ER_NO_SUCH_QUERY
        "Unknown query id: %lld";
    1958 "HY000" ER_BAD_BASE64_DATA
        "Bad base64 data as position %u";
    1959 "OP000" ER_INVALID_ROLE
        "Invalid role specification %`s";
    1960 "0L000" ER_INVALID_CURRENT_USER
        "The current user is invalid";
    1961 "HY000" ER_CANNOT_GRANT_ROLE
        "Cannot grant role '%s' to: %s";
    1962 "HY000" ER_CANNOT_REVOKE_ROLE
        "Cannot revoke role '%s' from: %s";
    1964 "HY000" ER_PRIOR_COMMIT_FAILED Ourselves Never
        "Commit failed due to failure of an earlier commit on which this one depends";
    1965 "42S02" ER_IT_IS_A_VIEW
        "'%-.192s' is a view";
    1967 "HY000" ER_TABLE_DEFINITION_TOO_BIG
        "The definition for table %`s is too big";
    1968 "HY000" ER_PLUGIN_INSTALLED
        "Plugin '%-.192s' already installed";
    1969 "70100" ER_STATEMENT_TIMEOUT
        "Query execution was interrupted (max_statement_time exceeded)";
    1970 "42000" ER_SUBQUERIES_NOT_SUPPORTED
        "%s does not support subqueries or stored functions";
    1971 "42000" ER_SET_STATEMENT_NOT_SUPPORTED
        "The system variable %.200s cannot be set in SET STATEMENT.";
    1973 "HY000" ER_USER_CREATE_EXISTS
        "Can't create user '%-.64s'@'%-.64s'; it already exists";
    1974 "HY000" ER_USER_DROP_EXISTS
        "Can't drop user '%-.64s'@'%-.64s'; it doesn't exist";
    1975 "HY000" ER_ROLE_CREATE_EXISTS
        "Can't create role '%-.64s'; it already exists";
    1976 "HY000" ER_ROLE_DROP_EXISTS
        "Can't drop role '%-.64s'; it doesn't exist";
    1977 "HY000" ER_CANNOT_CONVERT_CHARACTER
        "Cannot convert '%s' character 0x%-.64s to '%s'";
    1978 "22007" ER_INVALID_DEFAULT_VALUE_FOR_FIELD
        "Incorrect default value '%-.128T' for column '%.192s'";
    1979 "HY000" ER_KILL_QUERY_DENIED_ERROR
        "You are not owner of query %lld";
    1981 "HY000" ER_WARN_AGGFUNC_DEPENDENCE
        "Aggregate function '%-.192s)' of SELECT #%d belongs to SELECT #%d";
    3000 "HY000" ER_FILE_CORRUPT Ourselves Never
        "File %s is corrupted";
    3003 "HY000" ER_STORAGE_ENGINE_NOT_LOADED Ourselves Never
        "Storage engine for table '%s'.'%s' is not loaded.";
    3004 "0Z002" ER_GET_STACKED_DA_WITHOUT_ACTIVE_HANDLER
        "GET STACKED DIAGNOSTICS when handler not active";
    3008 "HY000" ER_FK_DEPTH_EXCEEDED
        "Foreign key cascade delete/update exceeds max depth of %d.";
    3012 "HY000" ER_EXPLAIN_NOT_SUPPORTED
        "EXPLAIN FOR CONNECTION command is supported only for \
         SELECT/UPDATE/INSERT/DELETE/REPLACE";
    3013 "HY000" ER_INVALID_FIELD_SIZE
        "Invalid size for column '%-.192s'.";
    3014 "HY000" ER_MISSING_HA_CREATE_OPTION
        "Table storage engine '%-.64s' found required create option missing";
    3015 "HY000" ER_ENGINE_OUT_OF_MEMORY Ourselves Never
        "Out of memory in storage engine '%-.64s'.";
    3020 "2201E" ER_INVALID_ARGUMENT_FOR_LOGARITHM
        "Invalid argument for logarithm";
    3026 "HY000" ER_DUP_LIST_ENTRY
        "Duplicate entry '%-.192s'.";
    3057 "42000" ER_USER_LOCK_WRONG_NAME
        "Incorrect user-level lock name '%-.192s'.";
    3058 "HY000" ER_USER_LOCK_DEADLOCK Ourselves Now
        "Deadlock found when trying to get user-level lock; try rolling back \
         transaction/releasing locks and restarting lock acquisition.";
    3159 "HY000" ER_SECURE_TRANSPORT_REQUIRED
        "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
    4002 "HY000" ER_WITH_COL_WRONG_LIST
        "WITH column list and SELECT field list have different column counts";
    4003 "HY000" ER_TOO_MANY_DEFINITIONS_IN_WITH_CLAUSE
        "Too many WITH elements in WITH clause";
    4004 "HY000" ER_DUP_QUERY_NAME
        "Duplicate query name %`-.64s in WITH clause";
    4005 "HY000" ER_RECURSIVE_WITHOUT_ANCHORS
        "No anchors for recursive WITH element '%s'";
    4006 "HY000" ER_UNACCEPTABLE_MUTUAL_RECURSION
        "Unacceptable mutual recursion with anchored table '%s'";
    4007 "HY000" ER_REF_TO_RECURSIVE_WITH_TABLE_IN_DERIVED
        "Reference to recursive WITH table '%s' in materialized derived";
    4008 "HY000" ER_NOT_STANDARD_COMPLIANT_RECURSIVE
        "Restrictions imposed on recursive definitions are violated for table '%s'";
    4009 "HY000" ER_WRONG_WINDOW_SPEC_NAME
        "Window specification with name '%s' is not defined";
    4010 "HY000" ER_DUP_WINDOW_NAME
        "Multiple window specifications with the same name '%s'";
    4011 "HY000" ER_PARTITION_LIST_IN_REFERENCING_WINDOW_SPEC
        "Window specification referencing another one '%s' cannot contain partition list";
    4012 "HY000" ER_ORDER_LIST_IN_REFERENCING_WINDOW_SPEC
        "Referenced window specification '%s' already contains order list";
    4013 "HY000" ER_WINDOW_FRAME_IN_REFERENCED_WINDOW_SPEC
        "Referenced window specification '%s' cannot contain window frame";
    4014 "HY000" ER_BAD_COMBINATION_OF_WINDOW_FRAME_BOUND_SPECS
        "Unacceptable combination of window frame bound specifications";
    4015 "HY000" ER_WRONG_PLACEMENT_OF_WINDOW_FUNCTION
        "Window function is allowed only in SELECT list and ORDER BY clause";
    4016 "HY000" ER_WINDOW_FUNCTION_IN_WINDOW_SPEC
        "Window function is not allowed in window specification";
    4017 "HY000" ER_NOT_ALLOWED_WINDOW_FRAME
        "Window frame is not allowed with '%s'";
    4018 "HY000" ER_NO_ORDER_LIST_IN_WINDOW_SPEC
        "No order list in window specification for '%s'";
    4019 "HY000" ER_RANGE_FRAME_NEEDS_SIMPLE_ORDERBY
        "RANGE-type frame requires ORDER BY clause with single sort key";
    4020 "HY000" ER_WRONG_TYPE_FOR_ROWS_FRAME
        "Integer is required for ROWS-type frame";
    4021 "HY000" ER_WRONG_TYPE_FOR_RANGE_FRAME
        "Numeric datatype is required for RANGE-type frame";
    4022 "HY000" ER_FRAME_EXCLUSION_NOT_SUPPORTED
        "Frame exclusion is not supported yet";
    4023 "HY000" ER_WINDOW_FUNCTION_DONT_HAVE_FRAME
        "This window function may not have a window frame";
    4024 "HY000" ER_INVALID_NTILE_ARGUMENT
        "Argument of NTILE must be greater than 0";
    4025 "23000" ER_CONSTRAINT_FAILED
        "CONSTRAINT %`s failed for %`-.192s.%`-.192s";
    4026 "HY000" ER_EXPRESSION_IS_TOO_BIG
        "Expression in the %s clause is too big";
    4027 "HY000" ER_ERROR_EVALUATING_EXPRESSION
        "Got an error evaluating stored expression %s";
    4028 "HY000" ER_CALCULATING_DEFAULT_VALUE
        "Got an error when calculating default value for %`s";
    4030 "HY000" ER_PARTITION_DEFAULT_ERROR
        "Only one DEFAULT partition allowed";
    4032 "HY000" ER_INVALID_DEFAULT_PARAM
        "Default/ignore value is not supported for such parameter usage";
    4035 "HY000" ER_JSON_BAD_CHR
        "Broken JSON string in argument %d to function '%s' at position %d";
    4036 "HY000" ER_JSON_NOT_JSON_CHR
        "Character disallowed in JSON in argument %d to function '%s' at position %d";
    4037 "HY000" ER_JSON_EOS
        "Unexpected end of JSON text in argument %d to function '%s'";
    4038 "HY000" ER_JSON_SYNTAX
        "Syntax error in JSON text in argument %d to function '%s' at position %d";
    4039 "HY000" ER_JSON_ESCAPING
        "Incorrect escaping in JSON text in argument %d to function '%s' at position %d";
    4040 "HY000" ER_JSON_DEPTH
        "Limit of %d on JSON nested structures depth is reached in argument %d to function '%s' \
         at position %d";
    4041 "HY000" ER_JSON_PATH_EOS
        "Unexpected end of JSON path in argument %d to function '%s'";
    4042 "HY000" ER_JSON_PATH_SYNTAX
        "Syntax error in JSON path in argument %d to function '%s' at position %d";
    4043 "HY000" ER_JSON_PATH_DEPTH
        "Limit of %d on JSON path depth is reached in argument %d to function '%s' at position \
         %d";
    4044 "HY000" ER_JSON_PATH_NO_WILDCARD
        "Wildcards or range in JSON path not allowed in argument %d to function '%s'";
    4045 "HY000" ER_JSON_PATH_ARRAY
        "JSON path should end with an array identifier in argument %d to function '%s'";
    4046 "HY000" ER_JSON_ONE_OR_ALL
        "Argument 2 to function '%s' must be \"one\" or \"all\".";
    4051 "HY000" ER_JSON_PATH_EMPTY
        "Path expression '$' is not allowed in argument %d to function '%s'.";
    4074 "HY000" ER_SUM_FUNC_WITH_WINDOW_FUNC_AS_ARG
        "Window functions can not be used as arguments to group functions.";
    4078 "HY000" ER_ILLEGAL_PARAMETER_DATA_TYPES2_FOR_OPERATION
        "Illegal parameter data types %s and %s for operation '%s'";
    4079 "HY000" ER_ILLEGAL_PARAMETER_DATA_TYPE_FOR_OPERATION
        "Illegal parameter data type %s for operation '%s'";
    4080 "42000" ER_WRONG_PARAMCOUNT_TO_CURSOR
        "Incorrect parameter count to cursor '%-.192s'";
    4081 "HY000" ER_UNKNOWN_STRUCTURED_VARIABLE
        "Unknown structured system variable or ROW routine variable '%-.*s'";
    4082 "HY000" ER_ROW_VARIABLE_DOES_NOT_HAVE_FIELD
        "Row variable '%-.192s' does not have a field '%-.192s'";
    4084 "HY000" ER_SEQUENCE_RUN_OUT
        "Sequence '%-.64s.%-.64s' has run out";
    4085 "HY000" ER_SEQUENCE_INVALID_DATA
        "Sequence '%-.64s.%-.64s' has out of range value for options";
    4089 "42S02" ER_NOT_SEQUENCE
        "'%-.64s.%-.64s' is not a SEQUENCE";
    4090 "42S02" ER_NOT_SEQUENCE2
        "'%-.192s' is not a SEQUENCE";
    4091 "42S02" ER_UNKNOWN_SEQUENCES
        "Unknown SEQUENCE: '%-.300s'";
    4092 "42S02" ER_UNKNOWN_VIEW
        "Unknown VIEW: '%-.300s'";
    4094 "HY000" ER_SP_STACK_TRACE
        "At line %u in %s";
    4097 "HY000" ER_COMPRESSED_COLUMN_USED_AS_KEY
        "Compressed column '%-.192s' can't be used in key specification";
    4099 "HY000" ER_WRONG_NUMBER_OF_VALUES_IN_TVC
        "The used table value constructor has a different number of values";
    4100 "HY000" ER_FIELD_REFERENCE_IN_TVC
        "Field reference '%-.192s' can't be used in table value constructor";
    4107 "HY000" ER_INVALID_VALUE_TO_LIMIT
        "Limit only accepts integer values";
    4108 "HY000" ER_INVISIBLE_NOT_NULL_WITHOUT_DEFAULT
        "Invisible column %`s must have a default value";
    4139 "HY000" ER_INDEX_FILE_FULL Ourselves Never
        "The index file for table '%-.192s' is full";
    4140 "HY000" ER_UPDATED_COLUMN_ONLY_ONCE
        "The column %`s.%`s cannot be changed more than once in a single UPDATE statement";
    4141 "HY000" ER_EMPTY_ROW_IN_TVC
        "Row with no elements is not allowed in table value constructor in this context";
    4150 "HY000" ER_USER_IS_BLOCKED
        "User is blocked because of too many credential errors; unblock with 'ALTER USER / FLUSH \
         PRIVILEGES'";
    4151 "HY000" ER_ACCOUNT_HAS_BEEN_LOCKED
        "Access denied, this account is locked";
    4159 "42000" ER_TOO_LONG_KEYPART
        "Specified key part was too long; max key part length is %u bytes";
    4160 "HY000" ER_TOO_LONG_DATABASE_COMMENT
        "Comment for database '%-.64s' is too long (max = %u)";
    4161 "HY000" ER_UNKNOWN_DATA_TYPE
        "Unknown data type: '%-.64s'";
    4162 "HY000" ER_UNKNOWN_OPERATOR
        "Operator does not exist: '%-.128s'";
    4166 "HY000" ER_LOAD_INFILE_CAPABILITY_DISABLED
        "The used command is not allowed because the MariaDB server or client has disabled the \
         local infile capability";
    4172 "HY000" ER_NOT_ALLOWED_IN_THIS_CONTEXT
        "'%-.128s' is not allowed in this context";
    4174 "HY000" ER_PK_INDEX_CANT_BE_IGNORED
        "A primary key cannot be marked as IGNORE";
    4180 "HY000" ER_WITH_TIES_NEEDS_ORDER
        "FETCH ... WITH TIES requires ORDER BY clause to be present";
    4182 "HY000" ER_STORAGE_ENGINE_DISABLED
        "Storage engine %s is disabled";
}
