//! Faults at random, one after the other, on one tunnel that stays what it is.

use crate::lab::{alive, banner, free_port, home, hosts, nothing_is_left, row, rows, supervisors};
use std::time::{Duration, Instant};
use towline_host::process;
use towline_testkit::ability::not_run;
use towline_testkit::campaign::{Seeded, is_soak, seed};
use towline_testkit::real::Slurm;
use towline_testkit::{Home, until};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Drop,
    KillSshd,
    LinkDown,
    KillDaemon,
    KillSupervisor,
}

const FAULTS: [Fault; 5] = [
    Fault::Drop,
    Fault::KillSshd,
    Fault::LinkDown,
    Fault::KillDaemon,
    Fault::KillSupervisor,
];

/// How long a link is away.
const AWAY: Duration = Duration::from_secs(10);
/// Within this it is back, once the path is.
const BACK: Duration = Duration::from_secs(15);

struct Campaign {
    slurm: Slurm,
    home: Home,
    port: u16,
    random: Seeded,
}

impl Campaign {
    /// Gives how long it took from the path's return to the first answer.
    fn strike(&mut self, fault: Fault) -> Duration {
        let host = ["bastion", "login"][self.random.next(2)];
        let link = ["bastion", "login", "c1"][self.random.next(3)];
        let before = supervisors(&self.home);
        match fault {
            Fault::Drop => self.slurm.drop_connections(),
            Fault::KillSshd => {
                self.slurm.kill_service(host, "sshd");
                std::thread::sleep(Duration::from_millis(self.random.next(3000) as u64));
                self.slurm.start_service(host, "sshd");
            }
            Fault::LinkDown => {
                self.slurm.cut(link);
                std::thread::sleep(AWAY);
                self.slurm.heal(link);
            }
            Fault::KillDaemon => assert!(self.home.kill_daemon(), "there was no daemon to kill"),
            Fault::KillSupervisor => {
                assert!(!before.is_empty(), "there was no supervisor to kill");
                for pid in &before {
                    process::signal(*pid, rustix::process::Signal::KILL);
                }
            }
        }
        let begun = Instant::now();
        while banner(self.port).is_none() {
            assert!(
                begun.elapsed() < BACK,
                "{fault:?} at {host}, {link}: not back after {BACK:?}: {}",
                row(&self.home, "box")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        let took = begun.elapsed();
        self.check(fault, &before);
        took
    }

    /// The same port, one entry, one supervisor, one connection, a daemon, and nothing else.
    fn check(&self, fault: Fault, before: &[i32]) {
        until("a daemon", || self.home.daemon());
        let open = until(&format!("{fault:?}: it to be said to be open"), || {
            Some(row(&self.home, "box")).filter(|row| row["state"] == "open")
        });
        assert_eq!(
            (rows(&self.home).len(), &open["port"]),
            (1, &self.port.into()),
            "{fault:?}: {open}"
        );
        let now = supervisors(&self.home);
        assert_eq!(now.len(), 1, "{fault:?}");
        assert!(
            fault == Fault::KillSupervisor || now == before,
            "{fault:?}: {before:?} became {now:?}"
        );
        let masters = || {
            alive(&self.home)
                .iter()
                .filter(|(_, words)| words.contains(" -M "))
                .count()
        };
        until(
            &format!("{fault:?}: one master, not {:?}", alive(&self.home)),
            || (masters() == 1).then_some(()),
        );
        // A probe may be under way; whatever else speaks to the master has gone with its
        // connection.
        let channels = || {
            alive(&self.home)
                .iter()
                .filter(|(_, words)| words.contains("ssh") && words.contains("-W [c1]"))
                .count()
        };
        until(
            &format!("{fault:?}: no channel left, of {:?}", alive(&self.home)),
            || (channels() == 0).then_some(()),
        );
        let ways = || {
            alive(&self.home)
                .iter()
                .filter(|(_, words)| words.contains("-W [login]"))
                .count()
        };
        until(
            &format!(
                "{fault:?}: one way to the login host, of {:?}",
                alive(&self.home)
            ),
            || (ways() == 1).then_some(()),
        );
    }
}

/// Long enough that everything on the way has given up: connections, and attempts to make new ones.
#[test]
fn it_comes_back_after_a_long_time_too() {
    if !is_soak() {
        return not_run(
            "a tunnel whose hosts are away for a minute each: only the soak has the time",
        );
    }
    let (slurm, home, port) = (hosts(), home(), free_port());
    home.configure(&format!(
        "tunnels:\n  box: {{to: c1, via: login, port: {port}, ssh_config: {}}}\n",
        slurm.ssh_config().display()
    ));
    home.tow(["tunnel", "open", "box"]).ok();
    let mut took = Vec::new();
    for host in ["bastion", "login", "c1"] {
        slurm.cut(host);
        std::thread::sleep(Duration::from_secs(60));
        let away = row(&home, "box");
        assert!(
            away["state"] != "open" && away["reason"].is_string(),
            "{host}: {away}"
        );
        slurm.heal(host);
        let begun = Instant::now();
        until(&format!("{host} to be back"), || banner(port));
        took.push(begun.elapsed());
        until("it to be said", || {
            (row(&home, "box")["state"] == "open").then_some(())
        });
    }
    println!("tunnel: away for a minute at each host, none lost; back after {took:.2?}");
    assert!(took.iter().all(|took| *took < BACK), "{took:?}");
    home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&home);
}

#[test]
fn it_comes_back_whatever_goes() {
    let (slurm, home, port) = (hosts(), home(), free_port());
    home.configure(&format!(
        "tunnels:\n  box: {{to: c1, via: login, port: {port}, ssh_config: {}}}\n",
        slurm.ssh_config().display()
    ));
    home.tow(["tunnel", "open", "box"]).ok();
    let mut campaign = Campaign {
        slurm,
        home,
        port,
        random: Seeded(seed()),
    };
    let times = if is_soak() { 50 } else { 5 };
    let mut order: Vec<Fault> = FAULTS.repeat(times);
    for at in (1..order.len()).rev() {
        order.swap(at, campaign.random.next(at + 1));
    }
    let begun = Instant::now();
    let mut took: Vec<(Fault, Duration)> = Vec::new();
    for fault in order {
        let back = campaign.strike(fault);
        took.push((fault, back));
    }
    let mut text = format!(
        "tunnel: {} faults in {} s, none lost; back after (median, worst): ",
        took.len(),
        begun.elapsed().as_secs()
    );
    for fault in FAULTS {
        let mut all: Vec<Duration> = took
            .iter()
            .filter(|(known, _)| *known == fault)
            .map(|(_, took)| *took)
            .collect();
        all.sort_unstable();
        text += &format!(
            "{fault:?} {:.2} s, {:.2} s; ",
            all[all.len() / 2].as_secs_f64(),
            all[all.len() - 1].as_secs_f64()
        );
    }
    println!("{}", text.trim_end_matches("; "));
    campaign.home.tow(["tunnel", "close", "box"]).ok();
    nothing_is_left(&campaign.home);
}
