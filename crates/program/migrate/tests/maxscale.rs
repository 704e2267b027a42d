//! Files of MaxScale, and what becomes of them.

#![forbid(unsafe_code)]

use migrate::{Format, Kind, Note, Source, TranslateError, Translation};
use settings::Configuration;

fn try_translate(texts: &[&str]) -> Result<Translation, TranslateError> {
    let source = |(place, text): (usize, &&str)| Source {
        name: format!("{place}.cnf"),
        text: (*text).to_owned(),
    };
    let sources: Vec<Source> = texts.iter().enumerate().map(source).collect();
    migrate::translate(Format::MaxScale, &sources)
}

/// A translation, which the reader of settings takes.
fn translate(text: &str) -> Translation {
    let made = try_translate(&[text]).expect("it is translated");
    let mistakes = Configuration::default().read_file(&made.text);
    assert!(mistakes.is_empty(), "{mistakes:?}\n{}", made.text);
    made
}

/// The text without comments and empty lines.
fn plain(text: &str) -> String {
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let lines: Vec<&str> = text.lines().filter(is_said).collect();
    lines.join("\n")
}

/// The kind of the note about a setting.
fn kind_of(notes: &[Note], setting: &str) -> Option<Kind> {
    let found = notes.iter().find(|it| it.setting == setting);
    found.map(|it| it.kind)
}

/// Two servers, a monitor, and a read-write split with more settings.
fn with_service(settings: &str) -> String {
    format!(
        "[a]\ntype=server\naddress=10.0.0.1\n[b]\ntype=server\naddress=10.0.0.2\nport=3307\n\
         [M]\ntype=monitor\nmodule=mariadbmon\nservers=a,b\nuser=m\npassword=p\n\
         [S]\ntype=service\nservers=a,b\nuser=m\npassword=p\n{settings}\
         [L]\ntype=listener\nservice=S\nport=4006\n"
    )
}

fn split(settings: &str) -> String {
    with_service(&format!("router=readwritesplit\n{settings}"))
}

/// What becomes of the example, without comments.
const EXAMPLE: &str = r#"listen = "[::]:4006"
workers = 2
log = "info"
max_connections = 600
max_allowed_packet = "1G"
wait_timeout = 31536000
[[server]]
name = "db-1"
address = "10.0.0.1:3306"
[[server]]
name = "db-2"
address = "10.0.0.2:3306"
max_connections = 60
[[server]]
name = "db-3"
address = "10.0.0.3:3306"
rank = 1
[[monitor]]
user = "maxmon"
password = "watch"
interval = 0.5
timeout = 2
failures = 2
[[cache]]
name = "Results"
size = 67108864
max_reply_size = 8388608
ttl = 30
assume_cacheable = true
[[service]]
name = "Read-Write"
router = "read-write-split"
lag_max = 10
causal_reads_timeout = 2
balance = "response-time"
wait = 20
[[service]]
name = "Reports"
role = "replica"
cache = "Results"
[[listener]]
address = "0.0.0.0:4008"
service = "Reports"
[query_log]
path = "/var/log/maxscale/statements"
text = "literal"
text_max = "64K"
[[rule]]
name = "Fresh"
services = ["Read-Write"]
pattern = 'from shop\.stock'
route = "primary"
[[rule]]
name = "Fresh-2"
services = ["Read-Write"]
pattern = 'from shop\.archive\b'
server = "db-3"
[[rule]]
name = "Log"
services = ["Read-Write"]
query_log = true"#;

#[test]
fn the_example_is_translated() {
    let made = translate(include_str!("../../../../docs/examples/maxscale.cnf"));
    assert_eq!(plain(&made.text), EXAMPLE);
    let of = |setting: &str| kind_of(&made.notes, setting);
    assert_eq!(of("[maxscale]"), Some(Kind::ToDo));
    assert_eq!(of("[Cluster] auto_failover"), Some(Kind::ToDo));
    assert_eq!(of("[Read-Write] user"), Some(Kind::ToDo));
    assert_eq!(of("[Read-Write] transaction_replay"), Some(Kind::LeftOut));
    assert_eq!(of("[Fresh] match03"), Some(Kind::ToDo));
    assert_eq!(of("[Log]"), Some(Kind::Differs));
    assert_eq!(of("[Hints]"), Some(Kind::Differs));
    // What a gateway does, too, is no note.
    assert_eq!(of("[db-1] protocol"), None);
    assert_eq!(of("[Read-Write] master_failure_mode"), None);
    // Each note is a line, with its place.
    for note in &made.notes {
        assert_eq!(note.to_string().lines().count(), 1);
        assert!(0 < note.line, "{note}");
    }
}

/// There is one value for all services, and none of them gets a limit that it did not have.
#[test]
fn a_service_without_a_limit_of_time_keeps_none() {
    let other = "[other]\ntype=service\nrouter=readconnroute\nservers=a\nuser=u\npassword=p\n\
                 [other-listener]\ntype=listener\nservice=other\nport=4010\n";
    for (of_other, expected) in [
        ("", Some("wait_timeout = 31536000\n")),
        ("connection_timeout=60s\n", Some("wait_timeout = 60\n")),
    ] {
        let other = other.replace("password=p\n", &format!("password=p\n{of_other}"));
        let text = translate(&(split("connection_timeout=30s\n") + &other)).text;
        let line = text.lines().find(|it| it.starts_with("wait_timeout"));
        assert_eq!(
            line.map(|it| format!("{it}\n")).as_deref(),
            expected,
            "{text}"
        );
    }
}

#[test]
fn reads_are_causal_as_the_original_says() {
    for (settings, expected) in [
        ("", "causal_reads = \"off\""),
        ("causal_reads=none\n", "causal_reads = \"off\""),
        ("causal_reads=local\n", "causal_reads_timeout = 10"),
        (
            "causal_reads=true\ncausal_reads_timeout=500ms\n",
            "causal_reads_timeout = 0.5",
        ),
        ("causal_reads=fast\n", ""),
        ("causal_reads=fast_global\n", "causal_reads = \"service\""),
        (
            "causal_reads=universal\n",
            "causal_reads = \"service\"\ncausal_reads_timeout = 10",
        ),
    ] {
        let text = plain(&translate(&split(settings)).text);
        let (_, said) = text
            .split_once("router = \"read-write-split\"\n")
            .unwrap_or_default();
        let (_, bare) = text
            .split_once("router = \"read-write-split\"")
            .expect("its router");
        assert_eq!(
            if expected.is_empty() { bare } else { said },
            expected,
            "{settings}"
        );
    }
}

#[test]
fn roles_of_readconnroute_are_kept() {
    for (options, role) in [
        ("", None),
        ("router_options=running\n", None),
        ("router_options=master,slave\n", None),
        ("router_options=master\n", Some("primary")),
        ("router_options=slave\n", Some("replica")),
    ] {
        let made = translate(&with_service(&format!("router=readconnroute\n{options}")));
        let expected = role.map(|it| format!("role = \"{it}\""));
        let said = made
            .text
            .lines()
            .find(|it| it.starts_with("role"))
            .map(str::to_owned);
        assert_eq!(said, expected, "{options}");
    }
}

#[test]
fn intervals_without_a_unit_have_milliseconds() {
    for (interval, expected) in [("2000", "2"), ("500ms", "0.5"), ("1s", "1")] {
        let text = split("").replace(
            "user=m\n",
            &format!("user=m\nmonitor_interval={interval}\n"),
        );
        let made = translate(&text);
        assert!(
            made.text.contains(&format!("\ninterval = {expected}\n")),
            "{}",
            made.text
        );
    }
}

#[test]
fn no_setting_is_lost() {
    let text = split("no_such_setting=1\ntransaction_replay=true\nenable_root_user=true\n")
        + "[X]\ntype=filter\nmodule=regexfilter\nmatch=a\n[Y]\ntype=thing\n";
    let made = translate(&text);
    let of = |setting: &str| kind_of(&made.notes, setting);
    assert_eq!(of("[S] no_such_setting"), Some(Kind::Unknown));
    assert_eq!(of("[S] transaction_replay"), Some(Kind::LeftOut));
    assert_eq!(of("[S] enable_root_user"), None);
    assert_eq!(of("[X]"), Some(Kind::LeftOut));
    assert_eq!(of("[Y]"), Some(Kind::Unknown));
    // Notes are comments, too.
    assert!(
        made.text.contains("# unknown: [S] no_such_setting: "),
        "{}",
        made.text
    );
}

#[test]
fn passwords_that_are_encrypted_are_to_be_written() {
    let text = split("").replace("password=p", "password=96F99AA1315BDC3604B006F427DD9484");
    let made = translate(&text);
    assert!(
        made.text.contains("password = \"change-me\""),
        "{}",
        made.text
    );
    assert_eq!(kind_of(&made.notes, "[M] password"), Some(Kind::ToDo));
}

#[test]
fn servers_of_galera_are_in_the_order_of_their_priorities() {
    let text = split("")
        .replace("mariadbmon\n", "galeramon\nuse_priority=true\n")
        .replace("address=10.0.0.1", "address=10.0.0.1\npriority=2")
        .replace("port=3307", "port=3307\npriority=1");
    let made = translate(&text);
    let names: Vec<&str> = made
        .text
        .lines()
        .filter(|it| it.starts_with("name"))
        .collect();
    assert_eq!(names, ["name = \"b\"", "name = \"a\"", "name = \"S\""]);
    assert!(made.text.contains("kind = \"galera\""));
}

#[test]
fn what_gateways_cannot_have_is_left_out_with_its_listeners() {
    let more = "[Log]\ntype=service\nrouter=binlogrouter\n\
                [Log-Listener]\ntype=listener\nservice=Log\nport=4000\n\
                [NoSQL]\ntype=listener\nservice=S\nprotocol=nosqlprotocol\nport=17017\n\
                [Apart]\ntype=service\nrouter=readconnroute\nservers=a\n";
    let made = translate(&(split("") + more));
    for setting in ["[Log]", "[Log-Listener]", "[NoSQL]", "[Apart]"] {
        assert_eq!(
            kind_of(&made.notes, setting),
            Some(Kind::LeftOut),
            "{setting}"
        );
    }
    assert_eq!(made.text.matches("[[service]]").count(), 1);
    assert_eq!(made.text.matches("[[listener]]").count(), 0);
}

#[test]
fn filters_say_what_they_can() {
    let filters = "filters=One|Two|Gone\n";
    let more = "[One]\ntype=filter\nmodule=namedserverfilter\nuser=app\nsource=192.168.%.%\n\
                options=case\nmatch01=/^insert/\ntarget01=a\nmatch02=x\ntarget02=a,b\n\
                match03=y\n\
                [Two]\ntype=filter\nmodule=ccrfilter\ntime=5s\n";
    let made = translate(&(split(filters) + more));
    let rules = plain(&made.text);
    let (_, rule) = rules.split_once("[[rule]]\n").expect("a rule");
    let expected = "name = \"One\"\nservices = [\"S\"]\nusers = [\"app\"]\n\
                    addresses = [\"192.168.0.0/16\"]\npattern = \"(?-i:^insert)\"\n\
                    server = \"a\"";
    assert_eq!(rule, expected);
    // Sessions read what they wrote, as by ccrfilter.
    assert!(!rules.contains("causal_reads"), "{rules}");
    let of = |setting: &str| kind_of(&made.notes, setting);
    assert_eq!(of("[One] target02"), Some(Kind::ToDo));
    assert_eq!(of("[One] match03"), Some(Kind::Unknown));
    assert_eq!(of("[Two]"), Some(Kind::Differs));
    assert_eq!(of("[S]"), Some(Kind::Unknown), "there is no filter `Gone`");
    // Of `readconnroute`, filters lead nowhere.
    let text = with_service(&format!("router=readconnroute\n{filters}")) + more;
    let made = translate(&text);
    assert!(!made.text.contains("[[rule]]"), "{}", made.text);
    assert_eq!(kind_of(&made.notes, "[One]"), Some(Kind::Differs));
}

/// What becomes of a cache of the only service: its section without its name, and the notes.
fn cache(settings: &str) -> (String, Vec<Note>) {
    let filter = format!("[C]\ntype=filter\nmodule=cache\n{settings}");
    let made = translate(&(split("filters=C\n") + &filter));
    let text = plain(&made.text);
    let (_, cache) = text.split_once("[[cache]]\nname = \"C\"\n").expect("it");
    let (cache, service) = cache.split_once("\n[[service]]").expect("a service");
    assert!(service.contains("cache = \"C\""), "{text}");
    (cache.replace('\n', "; "), made.notes)
}

#[test]
fn caches_are_kept() {
    let default = "size = 67108864; max_reply_size = 8388608";
    for (settings, expected) in [
        ("", format!("{default}; sharing = \"worker\"")),
        (
            "cached_data=shared\nsoft_ttl=5\n",
            format!("{default}; soft_ttl = 5"),
        ),
        (
            "cached_data=shared\nhard_ttl=1500ms\nsoft_ttl=1s\nselects=assume_cacheable\n",
            format!("{default}; ttl = 1.5; soft_ttl = 1; assume_cacheable = true"),
        ),
        (
            "cached_data=shared\nhard_ttl=10\nsoft_ttl=10\nselects=verify_cacheable\n",
            format!("{default}; ttl = 10"),
        ),
        (
            "cached_data=shared\nhard_ttl=10\ninvalidate=current\n",
            format!("{default}; ttl = 10"),
        ),
        (
            "cached_data=thread_specific\nmax_size=1Mi\nmax_resultset_size=2k\n",
            "size = 1048576; max_reply_size = 2000; sharing = \"worker\"".to_owned(),
        ),
    ] {
        assert_eq!(cache(settings).0, expected, "{settings}");
    }
    let needs_grant = |notes: &[Note]| notes.iter().any(|it| it.text.contains("GRANT SELECT, T"));
    for (settings, expected) in [
        ("hard_ttl=5\n", false),
        ("hard_ttl=5\nselects=verify_cacheable\n", true),
        ("hard_ttl=5\ninvalidate=current\n", true),
        ("hard_ttl=0\n", true),
    ] {
        assert_eq!(needs_grant(&cache(settings).1), expected, "{settings}");
    }
    let (_, notes) = cache(
        "rules=/etc/rules.json\nstorage=redis\nstorage_redis.server=a\nmax_count=5\n\
         max_resultset_rows=-1\nusers=mixed\ndebug=31\nenabled=true\nttl=7\n",
    );
    for (setting, kind) in [
        ("rules", Some(Kind::ToDo)),
        ("storage", Some(Kind::LeftOut)),
        ("storage_redis.server", Some(Kind::LeftOut)),
        ("max_count", Some(Kind::LeftOut)),
        ("max_resultset_rows", None),
        ("users", Some(Kind::Differs)),
        ("debug", Some(Kind::LeftOut)),
        ("enabled", None),
        ("ttl", Some(Kind::Unknown)),
    ] {
        assert_eq!(
            kind_of(&notes, &format!("[C] {setting}")),
            kind,
            "{setting}"
        );
    }
}

#[test]
fn a_service_has_one_cache_and_a_file_sixteen() {
    let filter = |name: &str| format!("[{name}]\ntype=filter\nmodule=cache\nhard_ttl=1\n");
    let made = translate(&(split("filters=A|B\n") + &filter("A") + &filter("B")));
    assert_eq!(made.text.matches("[[cache]]").count(), 1);
    assert!(made.text.contains("cache = \"A\""), "{}", made.text);
    assert_eq!(kind_of(&made.notes, "[B]"), Some(Kind::ToDo));
    let off = filter("A") + "enabled=false\n";
    let made = translate(&(split("filters=A\n") + &off));
    assert!(!made.text.contains("cache ="), "{}", made.text);
    assert_eq!(kind_of(&made.notes, "[A]"), Some(Kind::LeftOut));
    let of_count = |count: usize| {
        let of = |it: usize| {
            format!(
                "[S{it}]\ntype=service\nrouter=readconnroute\nservers=a\nuser=m\nfilters=C{it}\n\
                 [L{it}]\ntype=listener\nservice=S{it}\nport={}\n",
                5000 + it
            ) + &filter(&format!("C{it}"))
        };
        let more: Vec<String> = (0..count).map(of).collect();
        let made = translate(&(split("") + &more.concat()));
        let is_told = made.notes.iter().any(|it| it.text.contains("may be 16"));
        (made.text.matches("[[cache]]").count(), is_told)
    };
    assert_eq!(of_count(15), (15, false));
    assert_eq!(of_count(16), (16, false));
    assert_eq!(of_count(17), (16, true));
}

#[test]
fn query_logs_are_kept() {
    let of = |settings: &str| {
        let filter = format!("[Q]\ntype=filter\nmodule=qlafilter\n{settings}");
        translate(&(split("filters=Q\n") + &filter))
    };
    let log = "[query_log]\npath = \"/l\"\n";
    let literal = "text = \"literal\"\ntext_max = \"64K\"";
    let rule = "[[rule]]\nname = \"Q\"\nservices = [\"S\"]";
    for (settings, expected) in [
        ("", format!("{log}all = true\n{literal}")),
        (
            "use_canonical_form=true\nlog_data=query\nlog_type=unified\n",
            format!("{log}all = true\ntext_max = \"64K\""),
        ),
        (
            "match=/from shop/\noptions=case\n",
            format!("{log}{literal}\n{rule}\npattern = \"(?-i:from shop)\"\nquery_log = true"),
        ),
        (
            "exclude=^set\n",
            format!("{log}all = true\n{literal}\n{rule}\npattern = \"^set\"\nquery_log = false"),
        ),
        (
            "user=app\nsource=10.0.0.7\nexclude=id = 5\n",
            format!(
                "{log}{literal}\n{rule}\nusers = [\"app\"]\naddresses = [\"10.0.0.7\"]\n\
                 query_log = true"
            ),
        ),
    ] {
        let text = plain(&of(&format!("filebase=/l\n{settings}")).text);
        let (_, said) = text.split_once("[query_log]").expect(settings);
        assert_eq!(format!("[query_log]{said}"), expected, "{settings}");
    }
    // Nothing can be chosen.
    for settings in [
        "filebase=/l\nmatch=id = 5\n",
        "filebase=/l\nsource=db1\n",
        "",
    ] {
        let made = of(settings);
        assert!(!made.text.contains("query_log]"), "{}", made.text);
        assert_eq!(kind_of(&made.notes, "[Q]"), Some(Kind::ToDo), "{settings}");
    }
    // There is one.
    let filter = |name: &str| format!("[{name}]\ntype=filter\nmodule=qlafilter\nfilebase=/l\n");
    let made = translate(&(split("filters=Q|R\n") + &filter("Q") + &filter("R")));
    assert_eq!(made.text.matches("[query_log]").count(), 1);
    assert_eq!(kind_of(&made.notes, "[Q]"), Some(Kind::Differs));
    assert_eq!(kind_of(&made.notes, "[R]"), Some(Kind::ToDo));
}

#[test]
fn files_without_a_monitor_get_one() {
    let text = split("").replace("type=monitor", "type=filter");
    let made = translate(&text);
    assert!(
        made.text
            .contains("[[monitor]]\nuser = \"m\"\npassword = \"p\""),
        "{}",
        made.text
    );
    assert_eq!(kind_of(&made.notes, "[S]"), Some(Kind::ToDo));
}

#[test]
fn included_values_are_behind_own_ones() {
    let text = split("@include=More,None\nlag=1\n")
        + "[More]\ntype=include\nmax_replication_lag=7s\nrouter=readconnroute\n";
    let made = translate(&text);
    assert!(
        made.text
            .contains("router = \"read-write-split\"\nlag_max = 7"),
        "{}",
        made.text
    );
    let of = |setting: &str| kind_of(&made.notes, setting);
    assert_eq!(
        of("[S] @include"),
        Some(Kind::Unknown),
        "there is no section `None`"
    );
    assert_eq!(of("[S] lag"), Some(Kind::Unknown));
}

#[test]
fn other_files_replace_values() {
    let made = try_translate(&[&split(""), "[b]\naddress=10.0.0.9\n"]).expect("both are read");
    assert!(made.text.contains("\"10.0.0.9:3307\""), "{}", made.text);
    assert_eq!(kind_of(&made.notes, "[b] address"), Some(Kind::Differs));
}

#[test]
fn encryption_and_proxy_headers_are_kept() {
    let text = split("")
        .replace("port=4006", "port=4006\nssl=true\nssl_cert=/c\nssl_key=/k")
        .replace(
            "address=10.0.0.1",
            "address=10.0.0.1\nssl=true\nproxy_protocol=on",
        )
        .replace(
            "port=3307",
            "port=3307\nssl=true\nssl_ca=/ca\nssl_verify_peer_certificate=true",
        );
    let text = text + "[maxscale]\nproxy_protocol_networks=10.0.0.0/8\n";
    let made = translate(&text);
    let said = plain(&made.text);
    for line in [
        "require_secure_transport = \"ON\"",
        "tls_certificate = \"/c\"",
        "tls_key = \"/k\"",
        "proxy_protocol_networks = \"10.0.0.0/8\"",
        "proxy_protocol = \"v1\"\ntls = \"required\"",
        "tls = \"verified\"\ntls_authorities = \"/ca\"",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
}

#[test]
fn numbers_that_are_no_ports_are_named() {
    let text = split("")
        .replace("port=4006", "port=65536")
        .replace("port=3307", "port=0");
    let made = translate(&text);
    let said = plain(&made.text);
    assert!(said.contains("address = \"10.0.0.2:3306\""), "{said}");
    assert!(said.contains(":3306\"\n"), "{said}");
    assert!(!said.contains("65536"), "{said}");
    for (setting, number) in [("[L] port", "65536"), ("[b] port", "0")] {
        let found = made.notes.iter().find(|it| it.setting == setting);
        let note = found.unwrap_or_else(|| panic!("{setting}: {:#?}", made.notes));
        assert_eq!(note.kind, Kind::ToDo);
        let told = format!("`{number}` is no port");
        assert!(note.text.starts_with(&told), "{note}");
    }
    let variable = split("").replace("port=3307", "port=$PORT");
    let variable = try_translate(&[&variable]).expect("it is translated");
    assert_eq!(kind_of(&variable.notes, "[b] port"), Some(Kind::ToDo));
    // A socket needs no port.
    let socket = split("").replace("address=10.0.0.2\nport=3307", "socket=/s\nport=0");
    assert_eq!(kind_of(&translate(&socket).notes, "[b] port"), None);
}

#[test]
fn files_without_a_gateway_say_what_is_missing() {
    for (text, told) in [
        ("", "type=server"),
        ("[a]\ntype=server\naddress=x\n", "no listener"),
        ("[a]\nx\n", "0.cnf:2: expected"),
    ] {
        let error = try_translate(&[text]).expect_err(text).to_string();
        assert!(error.contains(told), "{error}");
    }
}
