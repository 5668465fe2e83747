//! A service that does not answer well is waited for, and that is said.

use super::{azure_home_at, write};
use towline_testkit::real::{Azurite, Fault, FaultProxy, Rule};

#[test]
fn what_is_asked_again_for_long_is_said() {
    let azurite = Azurite::shared();
    azurite.make_container("patience");
    let proxy = FaultProxy::before(azurite.endpoint());
    let home = azure_home_at(&proxy.account(azurite.first()), "patience");
    write(&home, "x", b"x");
    // The service asks for six seconds, once.
    proxy.inject(
        Rule::new(Fault::Answer {
            status: 503,
            retry_after_seconds: Some(6),
        })
        .to("PUT", "/x")
        .nth(1),
    );
    let slow = home.tow(["cp", "x", "az:x"]).ok();
    assert!(
        slow.stderr.contains("warning: 127.0.0.1:")
            && slow.stderr.contains("answers 503")
            && slow.stderr.contains("asked 1 time(s) in 0s, again in 6s"),
        "{slow:?}"
    );
    // What passes at once is not worth a word.
    proxy.inject(
        Rule::new(Fault::Answer {
            status: 500,
            retry_after_seconds: None,
        })
        .to("PUT", "/y")
        .nth(1),
    );
    let quick = home.tow(["cp", "x", "az:y"]).ok();
    assert!(
        !quick.stderr.contains("warning") && proxy.count("PUT", "/y") == 2,
        "{quick:?}"
    );
}
