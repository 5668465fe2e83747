//! What the service has put on the node: code, io, datasets.

use crate::lab::Lab;
use std::fs;
use towline_core::command::Program;
use towline_core::config::Datastore;
use towline_core::job::{IoMode, RetryPolicy};
use towline_core::reason::Cause;
use towline_core::resolve::{CopyPlan, IoPlan, MappedPlace, NamedStore};

fn store(kind: &str, path: Option<&str>) -> NamedStore {
    let datastore: Datastore =
        serde_json::from_value(serde_json::json!({"kind": kind, "path": path})).unwrap();
    NamedStore {
        name: "blobs".into(),
        datastore,
    }
}

fn io(name: &str, store: NamedStore, path: &str, mode: IoMode) -> IoPlan {
    IoPlan {
        name: name.into(),
        store,
        path: path.into(),
        mode,
        options: Vec::new(),
    }
}

#[test]
fn code_is_laid_out_on_every_node_and_again_for_the_next_attempt() {
    let script = r#"
        cat sub/file
        echo changed > sub/file
        touch "$LAB/read-$TOW_ATTEMPT-$RANK"
        until [ -e "$LAB/read-$TOW_ATTEMPT-0" ] && [ -e "$LAB/read-$TOW_ATTEMPT-1" ]; do sleep 0.02; done
        [ $TOW_ATTEMPT = 2 ]"#;
    let retry = RetryPolicy {
        when: vec![Cause::ExitCode],
        max: Some(2),
    };
    let lab = Lab::new(script)
        .on(2, 1)
        .code(&[("sub/file", "as it was\n")])
        .with(|resolved| resolved.retry = Some(retry));
    assert_eq!(
        lab.all(),
        [0, 0],
        "{}{}",
        lab.read("stderr-0"),
        lab.read("stderr-1")
    );
    for name in [
        "attempt-1.rank-0",
        "attempt-1.rank-1",
        "attempt-2.rank-0",
        "attempt-2.rank-1",
    ] {
        assert_eq!(lab.text(name), "as it was\n", "{name}");
    }
}

#[test]
fn given_io_fills_names_variables_and_mapped_folders() {
    let script =
        "cat '${{in}}/x' \"$TOW_IO_IN/x\" data/x; echo new > \"$TOW_IO_OUT/y\"; [ ! -e nowhere ]";
    let mut lab = Lab::new("true").code(&[("file", "")]).with(|resolved| {
        resolved.program = Program::Script(script.into());
        // A store that nobody here could reach.
        resolved.io = vec![
            io("in", store("azure_blob", None), "a", IoMode::Read),
            io("out", store("azure_blob", None), "b", IoMode::Write),
        ];
        let code = resolved.code.as_mut().unwrap();
        code.mapped = [
            ("data".to_owned(), MappedPlace::Io("in".to_owned())),
            ("nowhere".to_owned(), MappedPlace::Io("other".to_owned())),
        ]
        .into();
    });
    for name in ["in", "out"] {
        let place = lab.path(&format!("mnt {name}=here"));
        fs::create_dir(&place).unwrap();
        lab.words
            .extend(["--at".to_owned(), format!("{name}={}", place.display())]);
    }
    fs::write(lab.path("mnt in=here/x"), "there\n").unwrap();
    assert_eq!(
        lab.all(),
        [0],
        "{}{}",
        lab.read("stderr-0"),
        lab.text("attempt-1.rank-0")
    );
    assert_eq!(lab.text("attempt-1.rank-0"), "there\nthere\nthere\n");
    assert_eq!(lab.read("mnt out=here/y"), "new\n");
}

#[test]
fn io_that_was_not_given_is_brought_and_collected() {
    let lab = Lab::new("cp \"$TOW_IO_IN/x\" \"$TOW_IO_OUT/from-$RANK\"").on(2, 1);
    fs::create_dir_all(lab.path("nas/a")).unwrap();
    fs::write(lab.path("nas/a/x"), "brought\n").unwrap();
    let nas = lab.path("nas").display().to_string();
    let lab = lab.with(|resolved| {
        resolved.io = vec![
            io("in", store("folder", Some(&nas)), "a", IoMode::Read),
            io("out", store("folder", Some(&nas)), "b", IoMode::Write),
        ];
    });
    assert_eq!(
        lab.all(),
        [0, 0],
        "{}{}",
        lab.text("attempt-1.setup-0"),
        lab.text("attempt-1.setup-1")
    );
    for rank in 0..2 {
        assert_eq!(
            lab.read(&format!("nas/b/from-{rank}")),
            "brought\n",
            "{:?}",
            lab.endings()
        );
    }
}

#[test]
fn a_dataset_is_put_together_from_its_parts() {
    let script = "cat \"$TOW_COPY_DIR/train/x\" \"$TOW_COPY_DIR/deep/test/x\"";
    let copy = |subdirs: &[&str]| {
        let subdirs = subdirs.iter().map(|name| (*name).to_owned()).collect();
        Some(CopyPlan {
            store: store("azure_blob", None),
            path: "set".into(),
            subdirs,
        })
    };
    let mut lab = Lab::new(script).with(|resolved| resolved.copy = copy(&["train", "deep/test"]));
    for (part, name) in ["one", "two"].into_iter().enumerate() {
        fs::create_dir(lab.path(name)).unwrap();
        fs::write(lab.path(name).join("x"), format!("{name}\n")).unwrap();
        lab.words.extend([
            "--at".to_owned(),
            format!("copy/{part}={}", lab.path(name).display()),
        ]);
    }
    assert_eq!(lab.all(), [0], "{}", lab.read("stderr-0"));
    assert_eq!(lab.text("attempt-1.rank-0"), "one\ntwo\n");
    let mut whole = Lab::new("echo $TOW_COPY_DIR").with(|resolved| resolved.copy = copy(&[]));
    whole
        .words
        .extend(["--at".to_owned(), "copy/0=/data/set".to_owned()]);
    assert_eq!(whole.all(), [0]);
    assert_eq!(whole.text("attempt-1.rank-0"), "/data/set\n");
}

#[test]
fn an_image_is_the_services_to_run() {
    let lab = Lab::new("echo in it").with(|resolved| {
        let program = "/no/such/runtime".to_owned();
        resolved.container = Some(towline_core::resolve::Container {
            runtime: towline_core::resolve::Runtime::Docker,
            program,
            image: "x".into(),
            options: Vec::new(),
        });
    });
    assert_eq!(lab.all(), [0]);
}
