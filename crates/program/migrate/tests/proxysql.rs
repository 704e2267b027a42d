//! Files of ProxySQL, and what becomes of them.

#![forbid(unsafe_code)]

use migrate::{Format, Kind, Note, Source, TranslateError, Translation};
use settings::Configuration;

fn try_translate(text: &str) -> Result<Translation, TranslateError> {
    let source = Source {
        name: "proxysql.cnf".to_owned(),
        text: text.to_owned(),
    };
    migrate::translate(Format::ProxySql, &[source])
}

/// A translation, which the reader of settings takes.
fn translate(text: &str) -> Translation {
    let made = try_translate(text).expect("it is translated");
    let mistakes = Configuration::default().read_file(&made.text);
    assert!(mistakes.is_empty(), "{mistakes:?}\n{}", made.text);
    made
}

/// The text without comments and empty lines, from this word on.
fn plain_from(text: &str, from: &str) -> String {
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let lines: Vec<&str> = text.lines().filter(is_said).collect();
    let text = lines.join("\n");
    let place = text.find(from).unwrap_or(text.len());
    text.get(place..).unwrap_or_default().to_owned()
}

/// The kind of the note about a setting.
fn kind_of(notes: &[Note], setting: &str) -> Option<Kind> {
    let found = notes.iter().find(|it| it.setting == setting);
    found.map(|it| it.kind)
}

/// A primary and two replicas, a user, and these rules.
fn with_rules(rules: &str) -> String {
    format!(
        "mysql_servers = ( {{hostname=\"10.0.0.1\", hostgroup_id=10}}, \
         {{hostname=\"10.0.0.2\", hostgroup_id=20}}, {{hostname=\"10.0.0.3\", hostgroup_id=20}}, \
         {{hostname=\"10.0.0.3\", hostgroup_id=30}} )\n\
         mysql_replication_hostgroups = ( {{writer_hostgroup=10, reader_hostgroup=20}} )\n\
         mysql_users = ( {{username=\"app\", default_hostgroup=10}} )\n\
         mysql_query_rules = ( {rules} )\n"
    )
}

/// The rules of a translation: names and what follows them.
fn rules(made: &Translation) -> Vec<String> {
    let text = plain_from(&made.text, "[[rule]]");
    let parts = text.split("[[rule]]\nname = ").skip(1);
    parts.map(|it| it.trim_end().replace('\n', "; ")).collect()
}

/// What becomes of the example, without comments.
const EXAMPLE: &str = r#"listen = "0.0.0.0:6033"
workers = 2
log = "info"
max_connections = 600
max_allowed_packet = 67108864
admin_listen = "127.0.0.1:6032"
admin_socket = "/tmp/proxysql_admin.sock"
[[server]]
name = "10.0.0.1"
address = "10.0.0.1:3306"
max_connections = 80
[[server]]
name = "10.0.0.2"
address = "10.0.0.2:3306"
max_connections = 80
[[server]]
name = "10.0.0.3"
address = "10.0.0.3:3306"
max_connections = 80
[[monitor]]
user = "monitor"
password = "watch"
interval = 0.5
timeout = 0.8
failures = 3
[[cache]]
name = "ttl-5000ms"
size = 268435456
max_reply_size = 33554432
ttl = 5
assume_cacheable = true
[[service]]
name = "shop"
router = "read-write-split"
lag_max = 30
causal_reads = "off"
wait = 8
[[service]]
name = "port-6034"
router = "read-write-split"
lag_max = 30
causal_reads = "off"
wait = 8
[query_log]
path = "queries.log"
text = "literal"
text_max = "64K"
[[listener]]
address = "0.0.0.0:6034"
service = "port-6034"
[[rule]]
name = "rule-1"
services = ["port-6034"]
route = "replica"
cache = "off"
[[rule]]
name = "rule-5"
users = ["app"]
pattern = "^SELECT .* FROM shop.archive"
server = "10.0.0.3"
cache = "off"
query_log = true
[[rule]]
name = "rule-10"
pattern = "^SELECT.*FOR UPDATE$"
route = "primary"
cache = "off"
[[rule]]
name = "rule-30"
users = ["app"]
pattern = "^SELECT"
route = "replica"
[[rule]]
name = "rule-40"
pattern = '^DELETE FROM \S+$'
refuse = "DELETE without WHERE"
[[rule]]
name = "rule-20"
pattern = "^SELECT .* FROM shop.report"
max_statement_time = 30
cache = "ttl-5000ms"
[[rule]]
name = "default-10"
users = ["app"]
route = "primary"
[[rule]]
name = "default-30"
users = ["report"]
server = "10.0.0.3"
[[admin]]
user = "admin"
password = "admin"
may = "change"
[[admin]]
user = "operator"
password = "keys"
may = "change"
[[admin]]
user = "stats"
password = "look"
may = "read""#;

#[test]
fn the_example_is_translated() {
    let made = translate(include_str!("../../../../docs/examples/proxysql.cnf"));
    assert_eq!(plain_from(&made.text, "listen"), EXAMPLE);
    let of = |setting: &str| kind_of(&made.notes, setting);
    assert_eq!(of("mysql_query_rules 20: cache_ttl"), None);
    let log = Some(Kind::Differs);
    assert_eq!(of("mysql_variables: eventslog_filename"), log);
    assert_eq!(of("mysql_query_rules 50"), Some(Kind::ToDo));
    assert_eq!(of("mysql_query_rules 60"), Some(Kind::LeftOut));
    assert_eq!(
        of("mysql_users report: default_schema"),
        Some(Kind::LeftOut)
    );
    assert_eq!(of("mysql_users old: active"), Some(Kind::ToDo));
    assert_eq!(of("datadir"), Some(Kind::Differs));
    for note in &made.notes {
        assert_eq!(note.to_string().lines().count(), 1);
        assert!(0 < note.line, "{note}");
    }
}

#[test]
fn the_first_rule_that_says_a_thing_is_the_last_one_of_proxysql() {
    let made = translate(&with_rules(
        "{rule_id=3, match_digest=\"c\", destination_hostgroup=20, apply=1}, \
         {rule_id=1, active=1, match_digest=\"a\", destination_hostgroup=10}, \
         {rule_id=2, active=1, match_digest=\"b\", destination_hostgroup=20}",
    ));
    let expected = [
        "\"rule-3\"; pattern = \"c\"; route = \"replica\"",
        "\"rule-2\"; pattern = \"b\"; route = \"replica\"",
        "\"rule-1\"; pattern = \"a\"; route = \"primary\"",
        "\"default-10\"; route = \"primary\"",
    ];
    assert_eq!(rules(&made), expected);
}

#[test]
fn fast_routes_count_behind_rules_that_end_the_search() {
    let fast = "mysql_query_rules_fast_routing = ( {username=\"app\", schemaname=\"shop\", \
                flagIN=0, destination_hostgroup=30, comment=\"\"} )\n";
    let made = translate(
        &(with_rules(
            "{rule_id=1, active=1, match_digest=\"a\", destination_hostgroup=20}, \
             {rule_id=2, active=1, match_digest=\"b\", destination_hostgroup=20, apply=1}",
        ) + fast),
    );
    let expected = [
        "\"rule-2\"; pattern = \"b\"; route = \"replica\"",
        "\"fast-1\"; users = [\"app\"]; schemas = [\"shop\"]; server = \"10.0.0.3\"",
        "\"rule-1\"; pattern = \"a\"; route = \"replica\"",
        "\"default-10\"; route = \"primary\"",
    ];
    assert_eq!(rules(&made), expected);
}

#[test]
fn rules_have_a_limit() {
    let of_count = |count: usize| {
        let row =
            |it| format!("{{rule_id={it}, active=1, match_digest=\"a{it}\", timeout=1, apply=1}}");
        let rows: Vec<String> = (0..count).map(row).collect();
        let made = translate(&with_rules(&rows.join(",")));
        let is_told = made
            .notes
            .iter()
            .any(|it| it.text.contains("there may be 256"));
        (rules(&made).len(), is_told)
    };
    // One more is that of the default hostgroup.
    assert_eq!(of_count(254), (255, false));
    assert_eq!(of_count(255), (256, false));
    assert_eq!(of_count(256), (256, true));
}

#[test]
fn each_time_of_results_is_a_cache() {
    let variables = "mysql_variables = { query_cache_size_MB=16, query_cache_soft_ttl_pct=50 }\n";
    let made = translate(
        &(with_rules(
            "{rule_id=1, active=1, match_digest=\"a\", cache_ttl=3000, apply=1}, \
             {rule_id=2, active=1, match_digest=\"b\", cache_ttl=250, apply=1}, \
             {rule_id=3, active=1, match_digest=\"c\", cache_ttl=3000, cache_empty_result=0, \
             apply=1}, \
             {rule_id=4, active=1, match_digest=\"d\", cache_ttl=0, timeout=1000, apply=1}, \
             {rule_id=5, active=1, match_digest=\"e\", cache_ttl=7, proxy_port=9, apply=1}",
        ) + variables),
    );
    let text = plain_from(&made.text, "[[cache]]");
    let of = |name: &str, ttl: &str, soft: &str| {
        format!(
            "[[cache]]\nname = \"{name}\"\nsize = 8388608\nmax_reply_size = 1048576\nttl = {ttl}\n\
             soft_ttl = {soft}\nassume_cacheable = true\n"
        )
    };
    let expected = of("ttl-3000ms", "3", "1.5") + &of("ttl-250ms", "0.25", "0.125");
    assert!(
        text.starts_with(&format!("{expected}[[service]]")),
        "{text}"
    );
    let caches: Vec<bool> = rules(&made)
        .iter()
        .map(|it| it.contains("; cache = \"ttl-3000ms\""))
        .collect();
    assert_eq!(caches, [true, false, true, false, false]);
    let of = |setting: &str| kind_of(&made.notes, setting);
    let empty = "mysql_query_rules 3: cache_empty_result";
    assert_eq!(of(empty), Some(Kind::Differs));
    assert_eq!(of("mysql_variables: query_cache_size_MB"), None);
    // A rule that is not written has no cache.
    assert_eq!(made.text.matches("[[cache]]").count(), 2);
}

/// A rule with `apply` ends the search, so its statements have no cache, though a later rule is
/// about them, too.
#[test]
fn what_ends_the_search_is_kept_from_caches() {
    let made = translate(&with_rules(
        "{rule_id=1, active=1, match_digest=\"^SELECT .* FOR UPDATE$\", destination_hostgroup=10, \
         apply=1}, \
         {rule_id=2, active=1, match_digest=\"^INSERT \", destination_hostgroup=10, apply=1}, \
         {rule_id=3, active=1, match_digest=\"^SELECT v\", destination_hostgroup=10, timeout=9}, \
         {rule_id=4, active=1, match_digest=\"^SELECT\", cache_ttl=4000, apply=1}",
    ));
    let is_off = |it: &String| it.contains("cache = \"off\"");
    let off: Vec<bool> = rules(&made).iter().map(is_off).collect();
    // The rule without `apply` is behind the others, and that of the default hostgroup is last.
    assert_eq!(off, [true, false, false, false, false], "{}", made.text);
}

#[test]
fn caches_have_a_limit() {
    let of_count = |count: usize| {
        let row = |it| format!("{{rule_id={it}, active=1, cache_ttl={}, apply=1}}", it + 1);
        let rows: Vec<String> = (0..count).map(row).collect();
        let made = translate(&with_rules(&rows.join(",")));
        let is_told = made.notes.iter().any(|it| it.text.contains("may be 16"));
        (made.text.matches("[[cache]]").count(), is_told)
    };
    assert_eq!(of_count(15), (15, false));
    assert_eq!(of_count(16), (16, false));
    assert_eq!(of_count(17), (16, true));
}

#[test]
fn events_are_logged_if_there_is_a_file() {
    let rules_logging = "{rule_id=1, active=1, match_digest=\"a\", log=1, timeout=1000, apply=1}, \
                         {rule_id=2, active=1, match_digest=\"b\", log=0, apply=1}";
    let of = |rules: &str, variables: &str| {
        translate(&(with_rules(rules) + &format!("mysql_variables = {{ {variables} }}\n")))
    };
    let file = "eventslog_filename=\"/l\"";
    let name = "mysql_variables: eventslog_filename";
    let log = "[query_log]\npath = \"/l\"\n";
    let literal = "text = \"literal\"\ntext_max = \"64K\"\n";
    let made = of(rules_logging, file);
    let text = plain_from(&made.text, "[query_log]");
    assert!(text.starts_with(&format!("{log}{literal}[[")), "{text}");
    let written = rules(&made);
    assert!(written[0].ends_with("; query_log = true"), "{written:?}");
    assert!(written[1].ends_with("; query_log = false"), "{written:?}");
    assert_eq!(kind_of(&made.notes, name), Some(Kind::Differs));
    // All, with a size that a file may have.
    let all = format!("{file}, eventslog_default_log=1, eventslog_filesize=1000");
    let text = plain_from(&of("", &all).text, "[query_log]");
    let expected = format!("{log}all = true\n{literal}size = 65536\n[[");
    assert!(text.starts_with(&expected), "{text}");
    // Nothing is chosen, or there is no file.
    let made = of("", file);
    assert!(!made.text.contains("[query_log]"), "{}", made.text);
    assert_eq!(kind_of(&made.notes, name), Some(Kind::LeftOut));
    let made = of(rules_logging, "eventslog_default_log=1");
    assert!(!plain_from(&made.text, "listen").contains("query_log"));
    let of_rule = kind_of(&made.notes, "mysql_query_rules 1: log");
    assert_eq!(of_rule, Some(Kind::LeftOut));
}

#[test]
fn chains_are_joined_if_a_rule_can_have_both_conditions() {
    let made = translate(&with_rules(
        "{rule_id=1, active=1, username=\"app\", flagOUT=5}, \
         {rule_id=2, active=1, flagIN=5, match_digest=\"^SELECT\", destination_hostgroup=20, \
         apply=1}, \
         {rule_id=3, active=1, flagIN=5, username=\"other\", timeout=1000, apply=1}, \
         {rule_id=4, active=1, flagIN=7, timeout=1000, apply=1}",
    ));
    let expected = [
        "\"rule-2\"; users = [\"app\"]; pattern = \"^SELECT\"; route = \"replica\"",
        "\"rule-1\"; users = [\"app\"]; route = \"primary\"",
        "\"default-10\"; route = \"primary\"",
    ];
    assert_eq!(rules(&made), expected);
    let of = |setting: &str| kind_of(&made.notes, setting);
    assert_eq!(of("mysql_query_rules 3"), Some(Kind::ToDo));
    assert_eq!(of("mysql_query_rules 4"), Some(Kind::LeftOut));
}

#[test]
fn chains_that_lead_to_each_other_end() {
    let rows: Vec<String> = (0..40)
        .map(|it| {
            format!(
                "{{rule_id={it}, active=1, flagIN={}, flagOUT={}}}",
                it % 2,
                (it + 1) % 2
            )
        })
        .collect();
    let made = translate(&with_rules(&rows.join(",")));
    assert!(rules(&made).len() <= 256);
}

#[test]
fn what_a_rule_cannot_have_is_named() {
    for (rule, told) in [
        ("digest=\"0x1\", destination_hostgroup=20", "plateau digest"),
        (
            "match_digest=\"(?!a)\", destination_hostgroup=20",
            "cannot be used",
        ),
        (
            "match_pattern=\"id = 5\", destination_hostgroup=20",
            "literal",
        ),
        (
            "match_digest=\"a\", match_pattern=\"b\", destination_hostgroup=20",
            "one pattern",
        ),
        (
            "match_digest=\"a\", negate_match_pattern=1, timeout=5",
            "must not meet",
        ),
        ("proxy_addr=\"10.0.0.1\", timeout=5", "proxy_addr"),
        ("client_addr=\"db1\", timeout=5", "client_addr"),
        ("destination_hostgroup=99", "hostgroup 99"),
        ("proxy_port=7000, timeout=5", "proxy_port"),
        ("proxy_port=65536, timeout=5", "65536 is no port"),
        ("OK_msg=\"done\"", "answered by the gateway"),
        ("mirror_hostgroup=20, timeout=5", "copied"),
        ("multiplex=2, timeout=5", "cannot allow more"),
        ("sometimes=1, timeout=5", "does not know"),
    ] {
        let made = translate(&with_rules(&format!(
            "{{rule_id=1, active=1, apply=1, {rule}}}"
        )));
        let notes: Vec<String> = made.notes.iter().map(ToString::to_string).collect();
        let is_told = |it: &String| it.contains("mysql_query_rules 1") && it.contains(told);
        assert!(notes.iter().any(is_told), "{rule}: {notes:#?}");
    }
}

#[test]
fn a_later_rule_that_adds_something_is_named() {
    let made = translate(&with_rules(
        "{rule_id=1, active=1, username=\"ops\", destination_hostgroup=10, apply=1}, \
         {rule_id=2, active=1, match_digest=\"^DELETE \", error_msg=\"no\", apply=1}, \
         {rule_id=3, active=1, username=\"app\", match_digest=\"^UPDATE \", error_msg=\"no\", \
         apply=1}",
    ));
    let of = |setting: &str| kind_of(&made.notes, setting);
    assert_eq!(of("mysql_query_rules 2"), Some(Kind::Differs));
    assert_eq!(of("mysql_query_rules 3"), None);
}

#[test]
fn files_without_pairs_go_by_the_default_hostgroup() {
    let servers = |groups: &[u8]| {
        let row = |(place, group): (usize, &u8)| {
            format!("{{address=\"10.0.0.{place}\", hostgroup={group}}}")
        };
        let rows: Vec<String> = groups.iter().enumerate().map(row).collect();
        format!(
            "mysql_servers=({})\nmysql_users=({{username=\"a\", default_hostgroup=1}})\n",
            rows.join(",")
        )
    };
    let alike = translate(&servers(&[1, 1, 1]));
    assert!(!alike.text.contains("router"), "{}", alike.text);
    assert!(rules(&alike).is_empty());
    let split = translate(&servers(&[1, 0, 0]));
    assert!(split.text.contains("router = \"read-write-split\""));
    assert_eq!(rules(&split), ["\"default-1\"; route = \"primary\""]);
}

#[test]
fn each_pair_of_hostgroups_is_a_service() {
    let text = "mysql_servers = ( {address=\"10.0.0.1\", hostgroup=1}, \
                {address=\"10.0.0.2\", hostgroup=2}, {address=\"10.0.1.1\", hostgroup=3}, \
                {address=\"10.0.1.2\", hostgroup=4} )\n\
                mysql_replication_hostgroups = ( {writer_hostgroup=1, reader_hostgroup=2}, \
                {writer_hostgroup=3, reader_hostgroup=4, comment=\"billing\"} )\n\
                mysql_users = ( {username=\"b\", default_hostgroup=3}, \
                {username=\"a\", default_hostgroup=1} )\n\
                mysql_query_rules = ( {rule_id=1, active=1, match_digest=\"^SELECT\", \
                destination_hostgroup=2, apply=1} )\n";
    let made = translate(text);
    let expected = [
        "\"rule-1\"; services = [\"hostgroup-1\"]; pattern = \"^SELECT\"; route = \"replica\"",
        "\"default-3\"; services = [\"billing\"]; users = [\"b\"]; route = \"primary\"",
        "\"default-1\"; services = [\"hostgroup-1\"]; users = [\"a\"]; route = \"primary\"",
    ];
    assert_eq!(rules(&made), expected);
    let services = plain_from(&made.text, "[[monitor]]");
    let head = "[[monitor]]\nservers = [\"10.0.1.1\", \"10.0.1.2\"]";
    assert!(services.starts_with(head), "{services}");
    assert!(services.contains("socket = \"hostgroup-1.sock\"\nservice = \"hostgroup-1\""));
    assert_eq!(
        kind_of(&made.notes, "mysql_variables: interfaces"),
        Some(Kind::ToDo)
    );
}

#[test]
fn a_dump_of_defaults_has_few_notes() {
    let dump = include_str!("dump.cnf");
    let made = translate(&(with_rules("") + dump));
    let shown: Vec<&str> = made.notes.iter().map(|it| it.setting.as_str()).collect();
    let expected = ["mysql_users", "mysql_variables: monitor_username"];
    assert_eq!(shown, expected, "{:#?}", made.notes);
    assert!(!made.text.contains("max_statement_time"), "{}", made.text);
}

#[test]
fn members_of_galera_are_a_cluster() {
    let text = "mysql_servers = ( {hostname=\"/run/a.sock\", port=0, hostgroup_id=1, use_ssl=1}, \
                {hostname=\"fd00::2\", hostgroup_id=2, status=\"OFFLINE_SOFT\"}, \
                {hostname=\"db3\", port=3307, hostgroup_id=3, weight=10} )\n\
                mysql_galera_hostgroups = ( {writer_hostgroup=1, backup_writer_hostgroup=2, \
                reader_hostgroup=3, offline_hostgroup=9, active=1, max_writers=2, \
                writer_is_also_reader=0, max_transactions_behind=100} )\n\
                mysql_users = ( {username=\"a\", default_hostgroup=1, fast_forward=1}, \
                {username=\"b\", default_hostgroup=2, transaction_persistent=0} )\n";
    let made = translate(text);
    for lines in [
        "name = \"a.sock\"\nsocket = \"/run/a.sock\"\ntls = \"required\"",
        "name = \"fd00--2\"\naddress = \"[fd00::2]:3306\"",
        "name = \"db3\"\naddress = \"db3:3307\"",
        "kind = \"galera\"",
    ] {
        assert!(made.text.contains(lines), "{lines}\n{}", made.text);
    }
    let expected = [
        "\"forward-a\"; users = [\"a\"]; multiplex = false",
        "\"default-1\"; users = [\"a\"]; route = \"primary\"",
        "\"default-2\"; users = [\"b\"]; route = \"replica\"",
    ];
    assert_eq!(rules(&made), expected);
    let of = |setting: &str| kind_of(&made.notes, setting);
    assert_eq!(of("mysql_servers fd00::2: status"), Some(Kind::ToDo));
    assert_eq!(of("mysql_servers db3: weight"), Some(Kind::LeftOut));
    let of_pair = |name: &str| of(&format!("mysql_galera_hostgroups 1: {name}"));
    assert_eq!(of_pair("max_writers"), Some(Kind::Differs));
    assert_eq!(of_pair("max_transactions_behind"), Some(Kind::Differs));
    assert_eq!(of_pair("offline_hostgroup"), None);
    assert_eq!(
        of("mysql_users b: transaction_persistent"),
        Some(Kind::Differs)
    );
}

#[test]
fn variables_are_translated_or_named() {
    let more = "mysql_variables = { mysql-wait_timeout=60000, multiplexing=\"false\", \
                default_query_timeout=5000, interfaces=\"[::1]:6033;/run/p.sock\", nothing=1, \
                server_version=\"8.0\", monitor_galera_healthcheck_interval=\"5000\", \
                max_allowed_packet=\"1048576\", query_digests=\"true\" }\n\
                admin_variables = { restapi_enabled=true, restapi_port=7070, web_enabled=true }\n\
                scheduler = ( {id=1} )\nproxysql_servers = ( )\n";
    let made = translate(&(with_rules("") + more));
    for line in [
        "listen = \"[::1]:6033\"",
        "wait_timeout = 60",
        "max_allowed_packet = 1048576",
        "metrics_listen = \"0.0.0.0:7070\"",
        "multiplex = false\nmax_statement_time = 5",
        "socket = \"/run/p.sock\"\nservice = \"hostgroup-10\"",
    ] {
        assert!(made.text.contains(line), "{line}\n{}", made.text);
    }
    let of = |setting: &str| kind_of(&made.notes, setting);
    assert_eq!(of("mysql_variables: nothing"), Some(Kind::Unknown));
    assert_eq!(of("mysql_variables: server_version"), Some(Kind::Differs));
    assert_eq!(
        of("mysql_variables: monitor_galera_healthcheck_interval"),
        None
    );
    assert_eq!(of("admin_variables: web_enabled"), Some(Kind::LeftOut));
    assert_eq!(of("scheduler"), Some(Kind::LeftOut));
    assert_eq!(of("proxysql_servers"), None);
}

#[test]
fn numbers_that_are_no_ports_are_named() {
    let text = with_rules("").replace("10.0.0.1\"", "10.0.0.1\", port=65536")
        + "mysql_variables = { interfaces=\"0.0.0.0:70000\" }\n\
           admin_variables = { restapi_enabled=true, restapi_port=99999 }\n";
    let made = translate(&text);
    for line in [
        "listen = \"0.0.0.0:6033\"",
        "metrics_listen = \"0.0.0.0:6070\"",
        "address = \"10.0.0.1:3306\"",
    ] {
        assert!(made.text.contains(line), "{line}\n{}", made.text);
    }
    for (setting, number) in [
        ("mysql_variables: interfaces", "70000"),
        ("admin_variables: restapi_port", "99999"),
        ("mysql_servers 10.0.0.1: port", "65536"),
    ] {
        let found = made.notes.iter().find(|it| it.setting == setting);
        let note = found.unwrap_or_else(|| panic!("{setting}: {:#?}", made.notes));
        assert_eq!(note.kind, Kind::ToDo);
        let told = format!("`{number}` is no port");
        assert!(note.text.starts_with(&told), "{note}");
    }
}

#[test]
fn files_without_servers_say_what_is_missing() {
    for (text, told) in [("", "no rows"), ("a = (", "proxysql.cnf:1: this bracket")] {
        let error = try_translate(text).expect_err(text).to_string();
        assert!(error.contains(told), "{error}");
    }
}
