use super::*;

#[test]
fn every_reason_has_words_of_its_own() {
    let owners = ["QOS", "Assoc"];
    let counted = [
        "Cpu", "CPU", "GRES", "Mem", "Memory", "Node", "License", "BB", "Energy", "Billing",
        "Unknown",
    ];
    let shapes = [
        "Grp{}",
        "Grp{}Limit",
        "Grp{}Minutes",
        "Grp{}MinutesLimit",
        "Grp{}RunMinutes",
        "Grp{}RunMinutesLimit",
    ];
    let more = [
        "Max{}PerJob",
        "Max{}PerJobLimit",
        "Max{}PerNode",
        "Max{}PerUser",
        "Max{}PerUserLimit",
        "Max{}MinutesPerJob",
        "Max{}MinutesPerJobLimit",
        "Min{}",
    ];
    let mut words: Vec<String> = table::REASONS
        .iter()
        .map(|(word, ..)| (*word).to_owned())
        .collect();
    for counted in counted {
        for owner in owners {
            words.extend(
                shapes
                    .iter()
                    .chain(&more)
                    .map(|shape| format!("{owner}{}", shape.replace("{}", counted))),
            );
        }
        words.extend(
            [
                "Max{}PerAccount",
                "Max{}RunMinsPerAccount",
                "Max{}RunMinsPerUser",
            ]
            .map(|shape| shape.replace("{}", counted)),
        );
    }
    for rest in ["GrpJobsLimit", "GrpSubmitJobsLimit", "GrpWallLimit"] {
        words.extend(owners.map(|owner| format!("{owner}{rest}")));
    }
    let others = [
        "QOSMaxJobsPerUserLimit",
        "QOSMaxSubmitJobPerUserLimit",
        "QOSMaxWallDurationPerJobLimit",
        "QOSMinCpuNotSatisfied",
        "AssocMaxJobsLimit",
    ];
    words.extend(others.map(str::to_owned));
    words.extend(
        [
            "AssocMaxSubmitJobLimit",
            "AssocMaxWallDurationPerJobLimit",
            "MaxJobsPerAccount",
            "MaxSubmitJobsPerAccount",
        ]
        .map(str::to_owned),
    );
    for word in words {
        let explained = explain(&word);
        assert!(!explained.text.starts_with("Slurm says"), "{word}");
        assert!(
            !explained.forever || explained.next.is_some(),
            "{word} never ends and nothing is advised"
        );
    }
    assert_eq!(explain("SomethingNew").text, "Slurm says `SomethingNew`");
    assert_eq!(explain("").text, "Slurm has not said yet why it waits");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn limits_of_qos_and_accounts_are_told_by_pattern() {
    for (word, text, forever) in [
        (
            "QOSMaxGRESPerUser",
            "its QOS allows one user only so many GPUs, and that limit is reached",
            false,
        ),
        (
            "QOSMaxCpuPerUserLimit",
            "its QOS allows one user only so many CPUs, and that limit is reached",
            false,
        ),
        (
            "QOSMaxMemoryPerUser",
            "its QOS allows one user only so much memory, and that limit is reached",
            false,
        ),
        (
            "QOSMaxJobsPerUserLimit",
            "its QOS allows one user only so many running jobs, and that limit is reached",
            false,
        ),
        (
            "QOSMaxWallDurationPerJobLimit",
            "its QOS allows one job only so much time, and it asks for more",
            true,
        ),
        (
            "QOSMaxGRESPerJob",
            "its QOS allows one job only so many GPUs, and it asks for more",
            true,
        ),
        (
            "QOSMaxGRESMinutesPerJob",
            "its QOS allows one job only so many GPU minutes, and it asks for more",
            true,
        ),
        (
            "QOSMinGRES",
            "it asks for fewer GPUs than its QOS wants",
            true,
        ),
        (
            "QOSGrpNodeLimit",
            "its QOS allows all jobs together only so many nodes, and that limit is reached",
            false,
        ),
        (
            "AssocGrpGRES",
            "your account allows all jobs together only so many GPUs, and that limit is reached",
            false,
        ),
        (
            "AssocGrpCPUMinutesLimit",
            "your account has used up its CPU minutes",
            false,
        ),
        (
            "AssocGrpGRESRunMinutes",
            "your account allows all jobs together to claim only so many GPU minutes, and running \
                jobs have claimed them",
            false,
        ),
        (
            "AssocMaxJobsLimit",
            "your account allows one user only so many running jobs, and that limit is reached",
            false,
        ),
        (
            "AssocMaxWallDurationPerJobLimit",
            "your account allows one job only so much time, and it asks for more",
            true,
        ),
        (
            "MaxGRESPerAccount",
            "its QOS allows one account only so many GPUs, and that limit is reached",
            false,
        ),
        (
            "MaxGRESRunMinsPerUser",
            "its QOS allows one user to claim only so many GPU minutes, and running jobs have \
                claimed them",
            false,
        ),
    ] {
        let explained = explain(word);
        assert_eq!(
            (explained.text.as_str(), explained.forever),
            (text, forever),
            "{word}"
        );
        assert!(explained.next.is_some(), "{word}");
    }
}

#[test]
fn longer_reasons_are_understood_in_both_spellings() {
    for reason in [
        "ReqNodeNotAvail, UnavailableNodes:c[1-3]",
        "(ReqNodeNotAvail,_UnavailableNodes:c[1-3])",
    ] {
        assert_eq!(
            explain(reason).text,
            "nodes that it needs are down, drained or reserved: c[1-3]",
            "{reason}"
        );
    }
    assert!(
        explain("ReqNodeNotAvail, May be reserved for other job")
            .text
            .contains("kept for another job")
    );
    assert!(
        explain("ReqNodeNotAvail, Reserved for maintenance")
            .text
            .contains("maintenance")
    );
    assert!(
        explain("ReqNodeNotAvail")
            .text
            .contains("down, drained, reserved")
    );
    for reason in [
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority \
            partitions",
        "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
    ] {
        assert!(
            explain(reason)
                .text
                .starts_with("nodes that it needs are down"),
            "{reason}"
        );
    }
    assert!(explain("launch_failed_requeued_held").forever);
    assert!(explain("Reservation maint1 was deleted").forever);
    assert!(explain("RaisedSignal:9(Killed)").text.contains("9(Killed"));
}

#[test]
fn the_outlook_is_told_where_it_is_known() {
    let outlook = Outlook {
        now: Moment(1_763_189_280_000),
        job: Some("5_3"),
        start: Some(Moment(1_763_203_680_000)),
        ahead: Some(3),
        waiting: Some(12),
    };
    let text = explain_with("Priority", &outlook).text;
    assert_eq!(
        text,
        "jobs of higher priority are ahead of it; 3 of 12 waiting jobs are ahead of it; expected \
            to start at 2025-11-15 10:48 UTC (in 4h00m)"
    );
    let next = explain_with(
        "Resources",
        &Outlook {
            ahead: Some(0),
            ..Outlook::default()
        },
    )
    .text;
    assert!(
        next.ends_with("; it is the next in its partition"),
        "{next}"
    );
    let never = explain_with("PartitionTimeLimit", &outlook).text;
    assert!(!never.contains("expected to start"), "{never}");
    assert!(
        is_turn("(Priority)") && is_turn("Resources") && !is_turn("JobHeldUser") && !is_turn("")
    );
    assert_eq!(
        explain_with("JobHoldMaxRequeue", &outlook).next.as_deref(),
        Some("`scontrol release 5_3` over there lets it go")
    );
    assert_eq!(
        explain_with("JobHeldUser", &outlook).next.as_deref(),
        Some("`tow resume` lets it go")
    );
    let past = Outlook {
        start: Some(Moment(5)),
        now: Moment(9),
        ..Outlook::default()
    };
    assert_eq!(
        explain_with("Priority", &past).text,
        "jobs of higher priority are ahead of it"
    );
}
