//! The cache of tokens, as an earlier version wrote it.

use super::cache::Cache;
use super::token::Token;
use serde_json::json;
use towline_core::time::Moment;

#[test]
fn a_token_is_still_read() {
    let kept = json!({
        "version": 1,
        "token": "not-a-secret",
        "ends": 1_763_189_340_456_i64,
        "renew": 1_763_189_280_123_i64,
        "login": null,
    });
    let token = Token::from_private(&kept).expect("a token");
    let now = token.to_private();
    for key in ["version", "token", "ends", "renew"] {
        assert_eq!(now[key], kept[key], "{key}");
    }
    assert!(token.is_good(Moment(1_763_189_340_455)) && !token.is_fresh(Moment(1_763_189_280_123)));
}

#[test]
fn a_file_of_the_cache_has_its_name() {
    let marks = [
        "token",
        "azure_cli",
        "",
        "tenant",
        "",
        "https://login",
        "https://resource",
    ];
    let path = Cache::new("/azure").path(&marks);
    assert_eq!(
        path.to_str(),
        Some("/azure/92939af31d369acd074afaada4e4549a.json")
    );
}
