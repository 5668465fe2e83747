//! A managed identity, over TLS: the token comes from a machine's own service.

use super::{noise, tree, write};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use towline_testkit::Home;
use towline_testkit::real::Azurite;

/// What App Service and its like offer: tokens at an address of the environment. It answers for as
/// long as the test program lives.
fn tokens(token: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = vec![0; 8192];
            let length = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..length]).to_lowercase();
            let good = request.contains("x-identity-header: proof")
                && request.contains("storage.azure.com");
            let body = serde_json::json!({ "access_token": token, "expires_on": "4102444800", "resource": "x", "token_type": "Bearer" }).to_string();
            let status = if good { "200 OK" } else { "400 Bad Request" };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: \
                    {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    format!("http://{address}/msi/token")
}

#[test]
fn a_managed_identity_gets_in_over_tls() {
    let azurite = Azurite::start_tls();
    azurite.make_container("identity");
    let authority = azurite.authority().unwrap();
    let home = Home::new(env!("CARGO_BIN_EXE_tow"))
        .with("IDENTITY_ENDPOINT", &tokens(azurite.bearer_token(3600)))
        .with("IDENTITY_HEADER", "proof")
        .with("SSL_CERT_FILE", &authority.display().to_string());
    fs::create_dir(home.path("nas")).unwrap();
    let store = |name: &str| {
        format!(
            "  {name}: {{kind: azure_blob, account: {}, container: identity, endpoint: '{}', \
                credential: managed_identity}}\n",
            azurite.account(),
            azurite.endpoint()
        )
    };
    super::configure(&home, &store("az"));
    write(&home, "d/big", &noise(9 << 20, 1));
    write(&home, "d/a b", b"small");
    home.tow(["cp", "d", "az:d"]).ok();
    home.tow(["cp", "az:d", "back"]).ok();
    assert!(tree(&home.project().join("d")) == tree(&home.project().join("back")));
}

/// Whoever is between us and a service has no certificate that an authority of ours signed.
#[test]
fn a_service_is_talked_to_only_if_somebody_whom_we_trust_vouches_for_it() {
    let (azurite, other) = (Azurite::start_tls(), Azurite::start_tls());
    azurite.make_container("identity");
    let mut home = Home::new(env!("CARGO_BIN_EXE_tow")).with("KEY", azurite.key());
    fs::create_dir(home.path("nas")).unwrap();
    super::configure(
        &home,
        &format!(
            "  az: {{kind: azure_blob, account: {}, container: identity, endpoint: '{}', \
                credential: {{account_key: env:KEY}}}}\n",
            azurite.account(),
            azurite.endpoint()
        ),
    );
    let assert_refused = |home: &Home, what: &str| {
        let refused = home.tow(["ls", "az:"]);
        assert!(
            refused.code == 125 && refused.stderr.contains("certificate"),
            "{what}: {refused:?}"
        );
    };
    assert_refused(&home, "the system knows no such authority");
    home.set(
        "SSL_CERT_FILE",
        &other.authority().unwrap().display().to_string(),
    );
    assert_refused(&home, "another authority is named");
    // What other tools take as a wish not to be careful is none here.
    for (name, value) in [
        ("AZURE_CLI_DISABLE_CONNECTION_VERIFICATION", "1"),
        ("NODE_TLS_REJECT_UNAUTHORIZED", "0"),
        ("PYTHONHTTPSVERIFY", "0"),
        ("GIT_SSL_NO_VERIFY", "1"),
    ] {
        home.set(name, value);
    }
    assert_refused(&home, "nothing turns it off");
    home.set(
        "SSL_CERT_FILE",
        &azurite.authority().unwrap().display().to_string(),
    );
    home.tow(["ls", "az:"]).ok();
}
