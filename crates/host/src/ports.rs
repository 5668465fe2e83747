//! Which processes listen on the ports of this machine.

use std::fs;

/// A listener at one of these addresses keeps others from `127.0.0.1`. They are written as the
/// kernel writes them: that address, all of IPv4, all of IPv6, and `127.0.0.1` mapped to IPv6.
const BLOCKING_ADDRESSES: [&str; 4] = [
    "0100007F",
    "00000000",
    "00000000000000000000000000000000",
    "0000000000000000FFFF00000100007F",
];

/// The listeners on a port: address and inode of the socket.
fn listening(port: u16) -> Vec<(String, String)> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"]
        .map(|file| fs::read_to_string(file).unwrap_or_default());
    tables
        .iter()
        .flat_map(|table| listening_in(table, port))
        .collect()
}

/// The listeners in one table. A line is `sl local remote state … inode`, with all numbers but the
/// inode in hexadecimal; state 0A is a listener.
fn listening_in(table: &str, port: u16) -> Vec<(String, String)> {
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (address, number) = words.get(1)?.rsplit_once(':')?;
        let is_it = *words.get(3)? == "0A" && u16::from_str_radix(number, 16) == Ok(port);
        is_it.then(|| {
            words
                .get(9)
                .map(|inode| (address.to_owned(), (*inode).to_owned()))
        })?
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

/// Whether a process listens on the port at any address. No connection is made.
pub fn is_listening(port: u16) -> bool {
    !listening(port).is_empty()
}

/// Whether a listener keeps others from listening on the port at `127.0.0.1`. No connection is
/// made.
pub fn is_taken(port: u16) -> bool {
    listening(port)
        .iter()
        .any(|(address, _)| BLOCKING_ADDRESSES.contains(&address.as_str()))
}

/// The process that listens on a port and its name, as far as this user may see it.
pub fn owner(port: u16) -> Option<(i32, String)> {
    let sockets: Vec<String> = listening(port)
        .into_iter()
        .map(|(_, number)| format!("socket:[{number}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    crate::process::all().into_keys().find_map(|pid| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let is_it = |link: std::path::PathBuf| {
            sockets
                .iter()
                .any(|socket| link.as_os_str() == socket.as_str())
        };
        open.flatten()
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(is_it)
            .then_some(())?;
        Some((
            pid,
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .ok()?
                .trim()
                .to_owned(),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listener_on_a_port_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when \
            retrnsmt   uid  timeout inode\n\
                     0: 0100007F:56CE 00000000:0000 0A 00000000:00000000 00:00000000 \
                         00000000     0        0 4711 1\n\
                     1: 0100007F:56CF 0100007F:0016 01 00000000:00000000 00:00000000 \
                         00000000     0        0 4712 1\n";
        assert_eq!(
            (listening_in(table, 22222), listening_in(table, 22223)),
            (vec![("0100007F".to_owned(), "4711".to_owned())], Vec::new())
        );
        let own = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = own.local_addr().expect("an address").port();
        assert_eq!(
            owner(port).map(|(pid, _)| pid),
            i32::try_from(std::process::id()).ok()
        );
        assert!(is_taken(port));
        drop(own);
        assert!(!is_listening(port) && !is_taken(port));
        let all = std::net::TcpListener::bind(("::", 0));
        assert!(
            all.is_err()
                || all.is_ok_and(|all| is_taken(all.local_addr().expect("an address").port()))
        );
    }
}
