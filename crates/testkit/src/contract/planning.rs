//! The part of the contract that is about facts, and about how a job fits.

use super::{Subject, counted, plan, plan_with};
use towline_core::cluster::{Draft, Section};
use towline_core::job::Job;
use towline_core::resolve::Surroundings;

pub(super) fn check(subject: &dyn Subject) {
    it_says_what_it_is(subject);
    facts_name_a_node_and_are_remembered(subject);
    a_request_is_made_of_its_arguments_alone(subject);
    a_job_that_needs_nothing_is_left_as_it_is(subject);
    what_it_shows_of_itself_is_a_table(subject);
    what_a_kind_cannot_do_is_said_in_the_plan(subject);
    connecting_twice_is_connecting_once(subject);
}

fn it_says_what_it_is(subject: &dyn Subject) {
    let cluster = subject.cluster();
    assert!(!cluster.kind().is_empty() && !cluster.name().is_empty());
    let plan = plan(subject, "true", 1);
    assert_eq!(
        (plan.kind.as_str(), plan.cluster.as_str()),
        (cluster.kind(), cluster.name())
    );
    assert_eq!(plan.is_here(), cluster.caps().is_here);
}

fn facts_name_a_node_and_are_remembered(subject: &dyn Subject) {
    let cluster = subject.cluster();
    let facts = cluster.facts().expect("it can be asked");
    assert!(facts.nodes.iter().any(|node| node.cpus > 0), "{facts:?}");
    let asked = counted(subject, || {
        let remembered = cluster.remembered_facts().expect("just learnt");
        assert_eq!(remembered.nodes.len(), facts.nodes.len());
        assert_eq!(remembered.own, facts.own, "all that was learnt");
    });
    assert!(asked.is_none_or(|asked| asked == 0), "nothing is asked");
}

fn a_request_is_made_of_its_arguments_alone(subject: &dyn Subject) {
    let cluster = subject.cluster();
    let facts = cluster.facts().expect("it can be asked");
    let made = plan_with(subject, "echo once", 2, facts.clone()).expect("it fits");
    let asked = towline_core::cluster::Asked {
        id: &made.id,
        runs: &made.runs,
        job: &made.job,
        resolved: &made.resolved,
    };
    let calls = counted(subject, || {
        for _ in 0..3 {
            let again = cluster.render(&asked, &facts).expect("the same fits again");
            assert_eq!(again, made.request);
        }
        let _ = cluster.notes(&made, &facts);
    });
    assert!(
        calls.is_none_or(|calls| calls == 0),
        "rendering asks nobody"
    );
}

fn a_job_that_needs_nothing_is_left_as_it_is(subject: &dyn Subject) {
    let facts = subject.cluster().facts().expect("it can be asked");
    let mut job = Job::default();
    subject.adapt(&mut job);
    let fit = subject
        .cluster()
        .fit(Draft {
            job: job.clone(),
            facts: facts.clone(),
            environment: &[],
            workdir: "/".as_ref(),
            home: None,
        })
        .expect("nothing is in its way");
    assert_eq!((fit.job, fit.container), (job, None));
    assert_eq!(fit.facts.nodes, facts.nodes);
}

fn what_it_shows_of_itself_is_a_table(subject: &dyn Subject) {
    let cluster = subject.cluster();
    let mut facts = cluster.facts().expect("it can be asked");
    let page = cluster.page(&mut facts);
    assert!(!page.sections.is_empty());
    for section in &page.sections {
        match section {
            Section::Text(text) => assert!(text.ends_with('\n'), "{text:?}"),
            Section::Table { columns, rows } => {
                assert!(
                    rows.iter().all(|row| row.len() == columns.len()),
                    "{page:?}"
                );
            }
        }
    }
    let summary = cluster.summary(&facts);
    assert!(!summary.is_empty() && !summary.contains('\n'), "{summary}");
    cluster.check_stage().expect("its stage answers");
}

/// A key without a use there is noted or refused, never dropped in silence.
fn what_a_kind_cannot_do_is_said_in_the_plan(subject: &dyn Subject) {
    let caps = subject.cluster().caps();
    let facts = || subject.cluster().facts().expect("it can be asked");
    let job = |change: &dyn Fn(&mut Job)| {
        let mut job = Job {
            command: towline_core::job::OneOrMany::Many(vec!["true".into()]),
            ..Job::default()
        };
        subject.adapt(&mut job);
        change(&mut job);
        let around = Surroundings {
            workdir: subject.workdir(),
            ..Surroundings::default()
        };
        subject.plan_of(job, around, facts())
    };
    if !caps.identity {
        job(&|job| job.identity = Some("user".to_owned())).expect_err("nobody to be");
    }
    if !caps.native_options {
        let plan = job(&|job| job.resources.account = Some("lab".to_owned())).expect("it fits");
        let said = |note: &String| note.contains("resources.account");
        assert!(plan.notes.iter().any(said), "{:?}", plan.notes);
    }
}

fn connecting_twice_is_connecting_once(subject: &dyn Subject) {
    let cluster = subject.cluster();
    cluster.connect(false).expect("it can be reached");
    cluster.connect(false).expect("again");
    assert!(cluster.trouble().is_none());
    cluster.hang_up();
    assert!(!cluster.is_open());
    cluster.facts().expect("the next question opens another");
}
