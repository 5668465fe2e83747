//! `tow __data`: the process for the data of an attempt. Its order is the first line of its stdin,
//! which is closed when the ranks have ended. On stdout it reports, one JSON value per line, when
//! all data is in place, and failures. On stderr, which is the set-up log, it says what it does.

use crate::data::mount::Mount;
use crate::output;
use std::fs;
use std::io::{BufRead, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use towline_core::config::{Datastore, StoreKind};
use towline_core::job::IoMode;
use towline_core::quantity::Memory;
use towline_core::redact::Secret;
use towline_core::resolve::NamedStore;
use towline_core::{Error, Result};
use towline_host::{lock, mounts, surroundings};
use towline_io::credential::Lookup;
use towline_io::data::Data;
use towline_io::transfer::engine::copy;
use towline_io::transfer::progress::Progress;
use towline_io::transfer::{Options, StorePath};
use towline_wire::runner::{CopyOrder, DataOrder, DataWord, IoOrder};

pub(crate) fn main() -> ExitCode {
    let outcome = read_order()
        .and_then(|order| crate::wiring::threads::runtime()?.block_on(Carrier::new(order).carry()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::status(&format!("data: {error}"));
            error
                .hints()
                .iter()
                .for_each(|hint| output::status(&format!("data: hint: {hint}")));
            // A runner that cannot read this any more still notices our exit.
            let _ = say(&DataWord::Failed {
                why: error.to_string(),
            });
            ExitCode::FAILURE
        }
    }
}

fn say(word: &DataWord) -> Result<()> {
    let mut line = serde_json::to_vec(word)
        .map_err(|error| Error::bug("a message cannot be written").source_error(error))?;
    line.push(b'\n');
    output::data(&line)
}

fn read_order() -> Result<DataOrder> {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| Error::bug("no order came").source_error(error))?;
    serde_json::from_str(&line)
        .map_err(|error| Error::bug("the order cannot be read").source_error(error))
}

struct Carrier {
    order: DataOrder,
    mounts: Vec<Mount>,
}

impl Carrier {
    const fn new(order: DataOrder) -> Self {
        Self {
            order,
            mounts: Vec::new(),
        }
    }

    async fn carry(mut self) -> Result<()> {
        let ranks_ended = wait_for_end()?;
        if !self.order.only_collect {
            let prepared = self.prepare().await.and_then(|()| say(&DataWord::Ready));
            if prepared.is_err() {
                self.release();
            }
            prepared?;
        }
        self.collect_until(ranks_ended).await;
        let mut collected = self.collect().await;
        for mount in &mut self.mounts {
            let settled = mount.settle().await;
            collected = collected.and(settled);
        }
        self.release();
        collected
    }

    async fn prepare(&mut self) -> Result<()> {
        let order = self.order.clone();
        for io in &order.io {
            let doing =
                |error: Error| error.while_doing(format!("`{}` cannot be downloaded", io.io.name));
            match io.io.mode {
                IoMode::Read => self.bring(io).await.map_err(doing)?,
                IoMode::Write => make_folder(Path::new(&io.place)).map_err(doing)?,
                IoMode::Mount => self.mount(io).await.map_err(doing)?,
            }
        }
        if let Some(copy) = &order.copy {
            self.copy_once(copy)
                .await
                .map_err(|error| error.while_doing("the dataset cannot be copied"))?;
        }
        Ok(())
    }

    async fn bring(&self, io: &IoOrder) -> Result<()> {
        let source = StorePath {
            store: self.open(&io.io.store)?,
            path: io.io.path.clone(),
        };
        self.move_to(source, here(Path::new(&io.place))?, &io.io.name)
            .await
    }

    /// Mounts a store. A folder is linked; other stores are mounted by a program that lives as long
    /// as this process.
    async fn mount(&mut self, io: &IoOrder) -> Result<()> {
        let place = Path::new(&io.place);
        if io.io.store.datastore.kind == StoreKind::Folder {
            let root = io.io.store.datastore.path.as_deref().unwrap_or_default();
            let folder = if io.io.path.is_empty() {
                PathBuf::from(root)
            } else {
                Path::new(root).join(&io.io.path)
            };
            if !folder.exists() {
                return Err(Error::not_found(format!(
                    "{} does not exist",
                    folder.display()
                )));
            }
            make_folder(place.parent().unwrap_or(place))?;
            if place.symlink_metadata().is_err() {
                symlink(&folder, place).map_err(|error| {
                    Error::from_io(format!("{} cannot be linked", folder.display()), error)
                })?;
            }
            return Ok(());
        }
        make_folder(place)?;
        let mount = self.with_lookup(|lookup| Mount::begin(&io.io, place, lookup))?;
        self.mounts.push(mount.ready().await?);
        Ok(())
    }

    /// Copies a dataset once per node: a second process waits, then finds everything there.
    async fn copy_once(&self, copy: &CopyOrder) -> Result<()> {
        let place = Path::new(&copy.place);
        make_folder(place)?;
        let path = place.with_extension("lock");
        let failed = |error: std::io::Error| {
            Error::from_io(format!("{} cannot be locked", place.display()), error)
        };
        let file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        let file =
            tokio::task::spawn_blocking(move || lock::lock_alone(&file).map(|()| file)).await;
        let _lock = file
            .map_err(|error| Error::bug("a task broke").source_error(error))?
            .map_err(failed)?;
        let store = self.open(&copy.copy.store)?;
        let whole = vec![String::new()];
        let subdirs = if copy.copy.subdirs.is_empty() {
            &whole
        } else {
            &copy.copy.subdirs
        };
        for subdir in subdirs {
            let path = [copy.copy.path.as_str(), subdir]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("/");
            let target = if subdir.is_empty() {
                here(place)?
            } else {
                StorePath {
                    store: folder(place)?,
                    path: subdir.clone(),
                }
            };
            self.move_to(
                StorePath {
                    store: store.clone(),
                    path,
                },
                target,
                "copy",
            )
            .await?;
        }
        Ok(())
    }

    async fn collect_until(&self, mut ranks_ended: oneshot::Receiver<()>) {
        let writes = self.order.io.iter().any(|io| io.io.mode == IoMode::Write);
        let every = if writes {
            Duration::from_secs(self.order.collect_every)
        } else {
            Duration::from_secs(3600)
        };
        loop {
            tokio::select! {
                _ = &mut ranks_ended => return,
                () = tokio::time::sleep(every) => {
                    // A file that was being written is collected the next time.
                    if let Err(error) = self.collect().await {
                        output::status(&format!("data: some output could not be collected yet: \
                            {error}"));
                    }
                }
            }
        }
    }

    /// Uploads the run's output. Nothing is ever deleted in the store.
    async fn collect(&self) -> Result<()> {
        for io in self
            .order
            .io
            .iter()
            .filter(|io| io.io.mode == IoMode::Write)
        {
            let place = Path::new(&io.place);
            if fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none())
                || !place.exists()
            {
                continue;
            }
            let doing = |error: Error| {
                error.while_doing(format!(
                    "`{}` cannot be collected; it is kept in {}",
                    io.io.name, io.place
                ))
            };
            let target = StorePath {
                store: self.open(&io.io.store).map_err(doing)?,
                path: io.io.path.clone(),
            };
            self.move_to(here(place)?, target, &io.io.name)
                .await
                .map_err(doing)?;
        }
        Ok(())
    }

    async fn move_to(&self, source: StorePath, target: StorePath, name: &str) -> Result<()> {
        let options = Options {
            journals: Some(PathBuf::from(&self.order.journals)),
            ..Options::default()
        };
        let outcome = copy(source, target, options, Arc::new(Progress::default())).await?;
        for odd in &outcome.left_out {
            output::status(&format!(
                "data: {name}: {} was left out: {}",
                odd.name, odd.why
            ));
        }
        output::status(&format!(
            "data: {name}: {} moved, {}; {} were there",
            outcome.sent,
            Memory(outcome.sent_bytes),
            outcome.equal_by_time + outcome.equal_by_hash
        ));
        match outcome.failed.into_iter().next() {
            Some((key, error)) => Err(error.while_doing(key)),
            None => Ok(()),
        }
    }

    fn open(&self, store: &NamedStore) -> Result<Arc<dyn Data>> {
        self.with_lookup(|lookup| towline_io::open::open(&store.name, &store.datastore, lookup))
    }

    /// Calls `act` with the values of references, which were resolved at submission.
    fn with_lookup<T>(&self, act: impl FnOnce(&Lookup<'_>) -> T) -> T {
        let secrets = &self.order.secrets.0;
        let variable = |name: &str| {
            secrets
                .get(&format!("env:{name}"))
                .cloned()
                .or_else(|| surroundings::variable(name))
        };
        let keyring = |name: &str| {
            secrets
                .get(&format!("keyring:{name}"))
                .map(|value| Secret::new(value.clone()))
        };
        // `~` is the home of the user on this node.
        let home = surroundings::home();
        act(&Lookup {
            variable: &variable,
            keyring: &keyring,
            home: home.as_deref(),
            reach: &crate::wiring::machines::route,
            notice: &towline_io::credential::no_notice,
        })
    }

    fn release(&mut self) {
        self.mounts.clear();
        for io in self
            .order
            .io
            .iter()
            .filter(|io| io.io.mode == IoMode::Mount)
        {
            for stayed in mounts::release_below(Path::new(&io.place)) {
                output::status(&format!("data: {} is still mounted", stayed.display()));
            }
        }
    }
}

/// A path of this machine: its folder is the store and its name the key, so that it may become a
/// file or a folder.
fn here(place: &Path) -> Result<StorePath> {
    let (Some(parent), Some(name)) = (
        place.parent(),
        place.file_name().and_then(|name| name.to_str()),
    ) else {
        return Err(Error::bug(format!(
            "{} is no place for data",
            place.display()
        )));
    };
    Ok(StorePath {
        store: folder(parent)?,
        path: name.to_owned(),
    })
}

fn folder(path: &Path) -> Result<Arc<dyn Data>> {
    make_folder(path)?;
    let datastore = Datastore {
        kind: StoreKind::Folder,
        path: Some(path.display().to_string()),
        ..Datastore::default()
    };
    towline_io::open::open(
        "this machine",
        &datastore,
        &Lookup {
            variable: &|_| None,
            keyring: &|_| None,
            home: None,
            reach: &crate::wiring::machines::route,
            notice: &towline_io::credential::no_notice,
        },
    )
}

fn make_folder(path: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| Error::from_io(format!("{} cannot be made", path.display()), error))
}

/// Signalled once stdin is closed.
fn wait_for_end() -> Result<oneshot::Receiver<()>> {
    let (tell, ended) = oneshot::channel();
    let waiting = std::thread::Builder::new().spawn(move || {
        let mut rest = [0; 64];
        while std::io::stdin()
            .lock()
            .read(&mut rest)
            .is_ok_and(|count| count > 0)
        {}
        let _ = tell.send(());
    });
    waiting.map(|_| ended).map_err(crate::wiring::threads::none)
}
