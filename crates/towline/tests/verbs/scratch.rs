//! `tow scratch`: its verbs and their help. What they do has tests of its own, in `tests/scratch/`.

use super::home;

const VERBS: [&str; 7] = [
    "create", "restore", "backup", "auto", "ls", "check", "prune",
];

#[test]
fn every_verb_of_it_is_listed_and_has_examples() {
    let home = home();
    let help = home.tow(["scratch", "--help"]).ok().stdout;
    for verb in VERBS {
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(verb)),
            "{verb} is not in {help}"
        );
        let own = home.tow(["scratch", verb, "--help"]).ok().stdout;
        assert!(
            own.contains(&format!("Examples:\n  tow scratch {verb}")),
            "{own}"
        );
        for line in own
            .lines()
            .skip_while(|line| *line != "Examples:")
            .filter(|line| line.starts_with("  tow scratch"))
        {
            for option in line
                .split_whitespace()
                .filter(|word| word.starts_with("--"))
            {
                assert!(
                    own.lines().any(|line| line
                        .trim_start()
                        .trim_start_matches("-h, ")
                        .starts_with(option)),
                    "{line}: there is no {option}"
                );
            }
        }
        for line in own.lines() {
            assert!(line.chars().count() <= 100, "{verb}: {line}");
        }
    }
    assert!(!home.path("state/towline").exists(), "help makes nothing");
}

#[test]
fn without_a_verb_the_help_is_shown_and_a_strange_one_is_refused() {
    let home = home();
    assert_eq!(home.tow(["scratch"]).code, 120);
    let strange = home.tow(["scratch", "bakcup"]);
    assert!(
        strange.code == 120 && strange.stderr.contains("backup"),
        "{strange:?}"
    );
    assert_eq!(
        home.tow(["scratch", "list"]).ok().stdout,
        home.tow(["scratch", "ls"]).ok().stdout
    );
}
