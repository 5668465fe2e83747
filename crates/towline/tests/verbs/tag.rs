//! `tow tag`: tags of any run, at any time.

use super::{busy_home, ended, home, ids, runs};
use serde_json::json;

#[test]
fn tags_are_added_and_removed_and_found() {
    let (home, holder) = busy_home();
    let run = home.tow(["submit", "--tag", "try", "true"]).ok().id();
    let tagged = home.tow(["tag", &run, "+best", "-try", "+ünï code"]).ok();
    assert_eq!(tagged.stdout, format!("{run}: best, ünï code\n"));
    assert_eq!(home.show(&run)["tags"], json!(["best", "ünï code"]));
    assert_eq!(ids(&runs(&home, &["--tag", "best"])), [run.as_str()]);
    assert!(runs(&home, &["--tag", "try"]).is_empty());
    // Again: nothing changes.
    let again = home
        .tow(["tag", &run, "+best", "-try", "--json"])
        .ok()
        .json();
    assert_eq!(again, json!({"tagged": [], "unchanged": [run]}));
    // Running and ended runs too.
    home.tow(["tag", &holder, "+long"]).ok();
    home.tow(["abort", &holder, "--wait"]).ok();
    home.tow(["tag", &holder, "+ended", "-long"]).ok();
    assert_eq!(home.show(&holder)["tags"], json!(["ended"]));
    assert_eq!(home.show(&holder)["state"], "cancelled");
    let events = home.tow(["show", &holder, "--events"]).ok().stdout;
    assert!(
        events.contains(r#""event":"tagged","tags":["ended"]"#),
        "{events}"
    );
}

#[test]
fn every_run_of_a_sweep_is_tagged() {
    let home = home();
    let sweep = ended(&home, &["--sweep", "a=1-3", "true", "${{a}}"]);
    home.tow(["tag", &sweep, "+grid"]).ok();
    assert_eq!(runs(&home, &["--tag", "grid"]).len(), 3);
    home.tow(["tag", &format!("{sweep}-2"), "-grid"]).ok();
    assert_eq!(runs(&home, &["--tag", "grid"]).len(), 2);
}

#[test]
fn what_is_no_tag_is_refused() {
    let home = home();
    let run = ended(&home, &["true"]);
    for (words, code, said) in [
        (vec!["tag", &run], 120, "no tag is named"),
        (vec!["tag", "+a"], 120, "no run is named"),
        (vec!["tag", &run, "+"], 120, "`+` is no tag"),
        (vec!["tag", &run, "+a,b"], 120, "no comma"),
        (vec!["tag", &run, "+a\nb"], 120, "is no tag"),
        (vec!["tag", &run, "+a", "-a"], 120, "added and removed"),
        (vec!["tag", "nosuch", "+a"], 122, "no run is called"),
    ] {
        let refused = home.tow(&words);
        assert_eq!(refused.code, code, "{words:?}: {refused:?}");
        assert!(
            refused.stderr.contains(said),
            "{words:?}: {}",
            refused.stderr
        );
    }
    assert_eq!(home.show(&run)["tags"], json!([]));
}
