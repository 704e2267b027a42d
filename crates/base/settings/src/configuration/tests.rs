//! Tests of what a settings file says, with sections that are declared here.

use super::*;
use crate::kind::{Kind, Value};
use crate::section::{Field, FieldKind, Presence, Repetition, VALUE_COUNT_MAX};

const fn field(name: &'static str, kind: FieldKind, presence: Presence) -> Field {
    Field {
        name,
        kind,
        presence,
        text: "A field.",
    }
}

/// Servers, services that name them, and one cache: each form that a section may have.
pub(crate) const DECLARED: &[Section] = &[
    Section {
        name: "server",
        repetition: Repetition::List { count_max: 3 },
        fields: &[
            field("name", FieldKind::Name, Presence::Required),
            field("address", FieldKind::One(Kind::Address), Presence::Required),
            field(
                "weight",
                FieldKind::One(Kind::Unsigned { min: 0, max: 10 }),
                Presence::Default("1"),
            ),
        ],
        one_of: &[],
        text: "A server.",
    },
    Section {
        name: "service",
        repetition: Repetition::List { count_max: 3 },
        fields: &[
            field("name", FieldKind::Name, Presence::Required),
            field(
                "servers",
                FieldKind::References("server"),
                Presence::Required,
            ),
            field(
                "primary",
                FieldKind::Reference("server"),
                Presence::Optional,
            ),
            field("schemas", FieldKind::Many(Kind::Text), Presence::Optional),
        ],
        one_of: &[],
        text: "A service.",
    },
    Section {
        name: "cache",
        repetition: Repetition::Once,
        fields: &[
            field(
                "size",
                FieldKind::One(Kind::Bytes {
                    min: 1024,
                    max: 1 << 30,
                }),
                Presence::Default("64M"),
            ),
            field("file", FieldKind::One(Kind::Path), Presence::Optional),
            field("none", FieldKind::One(Kind::Bool), Presence::Optional),
        ],
        one_of: &["file", "none"],
        text: "A cache.",
    },
];

fn read(text: &str) -> (Configuration, Vec<String>) {
    let mut configuration = Configuration::declaring(DECLARED);
    let mistakes = configuration.read_file(text);
    let shown = mistakes.iter().map(|mistake| {
        let source = std::error::Error::source(&mistake.error);
        let source = source.map(|it| format!(": {it}")).unwrap_or_default();
        format!("{}: {}{source}", mistake.line, mistake.error)
    });
    let shown = shown.collect();
    (configuration, shown)
}

/// The text has these mistakes, and no others.
fn check(text: &str, expected: &[&str]) {
    assert_eq!(read(text).1, expected, "{text}");
}

const GOOD: &str = r#"
workers = 4

[[server]]
name = "Alpha"
address = "10.0.0.1:3306"

[[server]]
name = "beta"
address = "[::1]:3306"
weight = 10

[[service]]
name = "all"
servers = ["alpha", "beta"]
primary = "ALPHA"
schemas = ["a", "b"]

[cache]
none = true
"#;

#[test]
fn sections_are_read_in_their_order_with_their_defaults() {
    let (configuration, mistakes) = read(GOOD);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    assert_eq!(configuration.settings.unsigned("workers"), 4);
    let sections = &configuration.sections;
    let servers: Vec<_> = sections.all("server").collect();
    let names: Vec<_> = servers.iter().map(|it| it.name()).collect();
    assert_eq!(names, [Some("Alpha"), Some("beta")]);
    let weights: Vec<_> = servers.iter().map(|it| it.value("weight")).collect();
    let expected = [Value::Unsigned(1), Value::Unsigned(10)];
    assert_eq!(weights, expected.iter().map(Some).collect::<Vec<_>>());
    assert_eq!(
        servers.iter().map(|it| it.line()).collect::<Vec<_>>(),
        [4, 8]
    );
    let service = sections.named("service", "ALL").expect("its name");
    assert_eq!(service.values("servers").len(), 2);
    let primary = service.text("primary").expect("it is given");
    let primary = sections.named("server", primary).expect("it is there");
    assert_eq!(primary.text("address"), Some("10.0.0.1:3306"));
    let cache = sections.one("cache").expect("it is there");
    assert_eq!(cache.value("size"), Some(&Value::Unsigned(64 << 20)));
    assert_eq!(cache.text("file"), None);
    assert!(read("").0.sections.one("cache").is_none());
}

#[test]
fn a_list_of_sections_may_be_written_inline() {
    let text = "server = [{ name = \"a\", address = \"1.2.3.4:5\" }]";
    let (configuration, mistakes) = read(text);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    assert!(configuration.sections.named("server", "a").is_some());
}

#[test]
fn every_mistake_is_found_in_one_reading() {
    check(
        "max_conections = 1\nworkers = 256\n\n[[server]]\nname = \"a\"\nadress = \"1.2.3.4:5\"\n\
         weight = 11\n[[service]]\nservers = [\"b\"]\nname = \"s\"\n",
        &[
            "1: there is no setting `max_conections`; did you mean `max_connections`?",
            "2: setting `workers` cannot be `256`: must be between 0 and 255",
            "4: section `server` must have a field `address`",
            "6: section `server` has no field `adress`; did you mean `address`?",
            "7: field `weight` of section `server` cannot be `11`: must be between 0 and 10",
            "9: field `servers` of section `service`: there is no section `server` with the name \
             `b`; did you mean `a`?",
        ],
    );
}

#[test]
fn values_of_the_wrong_form_are_named() {
    check(
        "listen = [1]\n[workers]\n",
        &[
            "1: `listen` is neither a text, a number nor a boolean",
            "2: `workers` is neither a text, a number nor a boolean",
        ],
    );
    check(
        "listen = 1979-05-27\n",
        &["1: `listen` is neither a text, a number nor a boolean"],
    );
    check(
        "[servr]\n",
        &["1: there is no section `servr`; did you mean `server`?"],
    );
    check("[[somewhere]]\n", &["1: there is no section `somewhere`"]);
    check(
        "[server]\n",
        &["1: `server` is a section: write it below [[server]]"],
    );
    check(
        "server = [1]\n",
        &["1: `server` is a section: write it below [[server]]"],
    );
    check(
        "cache = 1\n",
        &["1: `cache` is a section: write it below [cache]"],
    );
    check(
        "[[cache]]\n",
        &["1: `cache` is a section: write it below [cache]"],
    );
    check(
        "[cache]\nnone = [true]\nworkers = 1\n",
        &[
            "2: `none` is neither a text, a number nor a boolean",
            "3: section `cache` has no field `workers`: write this setting above all sections",
        ],
    );
    check(
        "[[service]]\nname = \"a b\"\nservers = \"x\"\n",
        &[
            "2: `a b` is not a name: expected 1 to 64 letters, digits, `_`, `-` and `.`",
            "3: field `servers` of section `service` is a list: write servers = [..]",
        ],
    );
}

#[test]
fn an_empty_list_is_not_all() {
    check(
        "[[service]]\nname = \"a\"\nservers = []\n",
        &["3: field `servers` of section `service` is an empty list: leave it out, or fill it"],
    );
}

#[test]
fn nothing_may_stand_twice() {
    check(
        "buffer_pool_size = \"1G\"\ninnodb_buffer_pool_size = \"2G\"\n",
        &["2: setting `buffer_pool_size` is set in line 1, too"],
    );
    let server = |name: &str| format!("[[server]]\nname = \"{name}\"\naddress = \"1.2.3.4:5\"\n");
    let service = "[[service]]\nname = \"a\"\nservers = [\"a\", \"a\"]\n";
    check(
        &[&server("a"), &server("A"), service].concat(),
        &[
            "4: the section `server` in line 1 is also named `A`",
            "9: field `servers` of section `service` has `a` twice",
        ],
    );
}

#[test]
fn exactly_one_of_a_choice_is_given() {
    let expected = &["1: section `cache` must have exactly one of `file`, `none`"];
    check("[cache]\n", expected);
    check("[cache]\nfile = \"x\"\nnone = false\n", expected);
    check("[cache]\nfile = \"x\"\n", &[]);
}

#[test]
fn lists_have_limits() {
    let sections = |count| "[[server]]\nname = \"x\"\naddress = \"1.2.3.4:5\"\n".repeat(count);
    let too_many = "there are more than 3 sections `server`";
    for (count, is_fine) in [(2, true), (3, true), (4, false)] {
        let (configuration, mistakes) = read(&sections(count));
        let told = mistakes.iter().any(|mistake| mistake.ends_with(too_many));
        assert_eq!(told, !is_fine, "{count}: {mistakes:?}");
        assert_eq!(configuration.sections.all("server").count(), count.min(3));
    }
    for count in [VALUE_COUNT_MAX - 1, VALUE_COUNT_MAX, VALUE_COUNT_MAX + 1] {
        let values = "1, ".repeat(count);
        let server = "[[server]]\nname = \"a\"\naddress = \"1.2.3.4:5\"\n";
        let service = "[[service]]\nname = \"s\"\nservers = [\"a\"]\n";
        let text = format!("{server}{service}schemas = [{values}]\n");
        let (configuration, mistakes) = read(&text);
        let service = configuration.sections.one("service").expect("it is read");
        if count <= VALUE_COUNT_MAX {
            assert_eq!(
                (service.values("schemas").len(), mistakes.len()),
                (count, 0)
            );
        } else {
            let expected = "7: field `schemas` of section `service` has more than 1024 values";
            assert_eq!(mistakes, [expected]);
        }
    }
}

#[test]
fn lines_that_cannot_be_read_have_no_echoes() {
    let (_, mistakes) = read("listen = 0.0.0.0:3306\nwrokers = 1\n[[server]]\nname = \n");
    let [first, second, third] = mistakes.as_slice() else {
        panic!("three mistakes: {mistakes:?}");
    };
    assert!(
        first.starts_with("1: ") && first.contains("need quotes"),
        "{first}"
    );
    assert_eq!(
        second,
        "2: there is no setting `wrokers`; did you mean `workers`?"
    );
    assert!(third.starts_with("4: "), "{third}");
}

#[test]
fn the_command_line_goes_before_the_file() {
    let mut configuration = Configuration::default();
    let text = "max_connections = 0x32\nbuffer_pool_size = \"64M\"\ntls = true\n\
                max_statement_time = 1.5\nlock_wait_timeout = 1_000\n";
    assert_eq!(configuration.read_file(text), []);
    assert_eq!(configuration.settings.unsigned("max_connections"), 50);
    configuration
        .assign("max-connections=70")
        .expect("a number");
    configuration
        .assign("innodb_lock_wait_timeout = 3")
        .expect("a number");
    let settings = &configuration.settings;
    assert_eq!(settings.unsigned("max_connections"), 70);
    assert_eq!(settings.unsigned("buffer_pool_size"), 64 << 20);
    assert_eq!(settings.unsigned("row_lock_wait_timeout"), 3);
    assert_eq!(settings.unsigned("lock_wait_timeout"), 1000);
    assert_eq!(settings.micros("max_statement_time"), 1_500_000);
    assert!(settings.is_on("tls"));
    assert_eq!(configuration.line_of("max_connections"), None);
    assert_eq!(configuration.line_of("buffer_pool_size"), Some(2));
    assert!(configuration.assign("workers").is_err());
}
