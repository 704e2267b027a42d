//! Rules: which statements meet them, and what they say together.

use settings::SqlMode;

use super::*;
use crate::judge::Judge;

fn rule(name: &str, who: Who, what: What, ruling: Ruling) -> Rule {
    Rule {
        name: name.into(),
        who,
        what,
        ruling,
    }
}

fn pattern(text: &str) -> What {
    What {
        pattern: Some(text.to_owned()),
        ..What::default()
    }
}

fn refusal(text: &str) -> Ruling {
    Ruling {
        refusal: Some(text.into()),
        ..Ruling::default()
    }
}

fn timed(seconds: u64) -> Ruling {
    Ruling {
        time_max: Some(Duration::from_secs(seconds)),
        ..Ruling::default()
    }
}

const APP: SessionFacts<'static> = SessionFacts {
    service: "shop",
    user: "app",
    schema: None,
    address: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7)),
};

/// What rules say about a text in a session; `None` if that is nothing.
fn ruling(rules: Vec<Rule>, session: &SessionFacts<'_>, text: &str) -> Option<Ruling> {
    let mut judge = Judge::new(Arc::new(Rules::new(rules).unwrap()));
    let set = judge.rules_of(session);
    let once = {
        let judged = judge.judge(text.as_bytes(), SqlMode::default());
        judge.ruling(&set, &judged)
    };
    // The second verdict is the one that was kept.
    let judged = judge.judge(text.as_bytes(), SqlMode::default());
    assert_eq!(judge.ruling(&set, &judged), once);
    once.map(|it| (*it).clone())
}

#[test]
fn patterns_see_canonical_texts() {
    let says = |what: &str, text: &str| {
        ruling(
            vec![rule("r", Who::default(), pattern(what), refusal("no"))],
            &APP,
            text,
        )
        .is_some()
    };
    assert!(says(
        "^select .* from orders",
        "SELECT a FROM orders WHERE id = 7"
    ));
    assert!(says(r"id = \?$", "SELECT a FROM orders WHERE id = 7"));
    assert!(!says("7", "SELECT a FROM orders WHERE id = 7"));
    assert!(!says(
        "comment",
        "SELECT a FROM t /* comment */ WHERE id = 7"
    ));
    assert!(says("^call", "CALL p(1)"));
    assert!(says("(?-i)CALL", "CALL p(1)") && !says("(?-i)CALL", "call p(1)"));
    assert!(says(r"a\.b", "SELECT 1 FROM a.b WHERE c = 1"));
    // Bytes of any character set.
    let rules = vec![rule("r", Who::default(), pattern("sel.*x$"), refusal("no"))];
    let rules = Rules::new(rules).unwrap();
    assert!(
        !rules
            .of_text(b"select \xff\xfe x", SqlMode::default())
            .is_empty()
    );
}

#[test]
fn each_condition_has_to_be_met() {
    let who = Who {
        services: vec!["shop".into(), "other".into()],
        users: vec!["app".into()],
        schemas: vec!["stats".into()],
        networks: vec!["10.0.0.0/8".parse().unwrap()],
    };
    let met = |change: fn(&mut SessionFacts<'static>)| {
        let mut session = SessionFacts {
            schema: Some(b"stats"),
            ..APP
        };
        change(&mut session);
        let rules = vec![rule("r", who.clone(), What::default(), refusal("no"))];
        ruling(rules, &session, "SELECT 1").is_some()
    };
    assert!(met(|_| {}));
    assert!(!met(|it| it.service = "third"));
    assert!(!met(|it| it.user = "App"));
    assert!(!met(|it| it.schema = None));
    assert!(!met(|it| it.schema = Some(b"Stats")));
    assert!(!met(|it| it.address = [192, 168, 0, 1].into()));
}

#[test]
fn a_digest_stands_for_one_canonical_text() {
    let text = "SELECT a FROM t WHERE id = ?";
    let what = What {
        digests: vec![1, digest(text.as_bytes())],
        ..What::default()
    };
    let rules = vec![rule("r", Who::default(), what.clone(), refusal("no"))];
    assert!(ruling(rules.clone(), &APP, "SELECT a FROM t WHERE id = 3").is_some());
    assert!(ruling(rules, &APP, "SELECT b FROM t WHERE id = 3").is_none());
    let both = What {
        pattern: Some("update".to_owned()),
        ..what
    };
    let rules = vec![rule("r", Who::default(), both, refusal("no"))];
    assert!(ruling(rules, &APP, "SELECT a FROM t WHERE id = 3").is_none());
}

#[test]
fn tables_are_those_that_a_text_names() {
    let says = |tables: &[&str], text: &str| {
        let what = What {
            tables: tables.iter().map(|it| it.parse().unwrap()).collect(),
            ..What::default()
        };
        let rules = vec![rule("r", Who::default(), what, refusal("no"))];
        ruling(rules, &APP, text).is_some()
    };
    for text in [
        "SELECT a FROM orders WHERE id = 7",
        "SELECT a FROM t JOIN (shop . `Orders` AS o) ON 1",
        "UPDATE shop.ORDERS SET a = 1",
        "DROP TABLE a, orders",
        "SELECT o.orders FROM o",
    ] {
        assert!(
            says(&["orders"], text) && says(&["t7", "orders"], text),
            "{text}"
        );
        let has_database = text.to_ascii_lowercase().contains("shop");
        assert_eq!(says(&["shop.orders"], text), has_database, "{text}");
        assert!(
            !says(&["other.orders"], text) && !says(&["order"], text),
            "{text}"
        );
    }
    assert!(!says(&["orders"], "SELECT 'orders' /* orders */"));
    assert!(!says(&["shop.orders"], "SELECT orders, shop.x FROM shop.y"));
    let ansi = |mode| {
        let what = What {
            tables: vec!["orders".parse().unwrap()],
            ..What::default()
        };
        let rules = Rules::new(vec![rule("r", Who::default(), what, refusal("no"))]);
        let met = rules.unwrap().of_text(b"DELETE FROM \"orders\"", mode);
        !met.is_empty()
    };
    assert!(ansi(SqlMode::ANSI_QUOTES) && !ansi(SqlMode::default()));
}

#[test]
fn the_first_rule_that_says_a_thing_decides_it() {
    let rules = vec![
        rule("a", Who::default(), pattern("nothing"), timed(1)),
        rule("b", Who::default(), pattern("from t"), timed(2)),
        rule("c", Who::default(), What::default(), timed(3)),
        rule("d", Who::default(), What::default(), refusal("no")),
    ];
    let of_t = ruling(rules.clone(), &APP, "SELECT 1 FROM t").unwrap();
    assert_eq!(of_t.time_max, Some(Duration::from_secs(2)));
    assert_eq!(of_t.refusal.as_deref(), Some("no"));
    let other = ruling(rules.clone(), &APP, "SELECT 1").unwrap();
    assert_eq!(other.time_max, Some(Duration::from_secs(3)));
    let judge = Judge::new(Arc::new(Rules::new(rules).unwrap()));
    let general = judge.general_ruling(&judge.rules_of(&APP));
    assert_eq!(general, other);
}

#[test]
fn there_are_as_many_rules_as_a_set_has_bits() {
    let many = |count: usize| {
        let name = |place: usize| format!("r{place}");
        let rules = (0..count).map(|it| {
            let what = pattern(&format!("from t{it}$"));
            rule(&name(it), Who::default(), what, refusal(&name(it)))
        });
        Rules::new(rules.collect())
    };
    for count in [RULES_MAX - 1, RULES_MAX] {
        let last = count - 1;
        let mut judge = Judge::new(Arc::new(many(count).unwrap()));
        let set = judge.rules_of(&APP);
        let judged = judge.judge(
            format!("SELECT a FROM t{last}").as_bytes(),
            SqlMode::default(),
        );
        let ruling = judge.ruling(&set, &judged).unwrap();
        assert_eq!(ruling.refusal.as_deref(), Some(&*format!("r{last}")));
    }
    assert!(
        matches!(many(RULES_MAX + 1), Err(errors) if matches!(errors[..], [RulesError::TooMany]))
    );
}

#[test]
fn patterns_see_the_beginning_of_a_text() {
    let rules = vec![rule("r", Who::default(), pattern("x$"), refusal("no"))];
    let rules = Rules::new(rules).unwrap();
    let of_length = |length: usize| {
        let mut text = vec![b' '; length];
        *text.last_mut().unwrap() = b'x';
        !rules.of_text(&text, SqlMode::default()).is_empty()
    };
    assert!(of_length(PATTERN_BYTES_MAX - 1) && of_length(PATTERN_BYTES_MAX));
    assert!(!of_length(PATTERN_BYTES_MAX + 1));
}

#[test]
fn a_pattern_that_is_none_is_named() {
    let error = |text: &str| {
        let rules = vec![rule("bad", Who::default(), pattern(text), refusal("no"))];
        let errors = Rules::new(rules).unwrap_err();
        assert_eq!(errors.len(), 1);
        errors[0].to_string()
    };
    let told = error("a(b");
    assert_eq!(told, "rule `bad`: `pattern` cannot be used: unclosed group");
    assert!(error("a{1000}{1000}{1000}").contains("too large"));
    let bad = |name| rule(name, Who::default(), pattern("("), refusal("no"));
    let errors = Rules::new(vec![bad("one"), bad("other")]).unwrap_err();
    let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert!(told[0].starts_with("rule `one`") && told[1].starts_with("rule `other`"));
    assert_eq!(told.len(), 2);
}
