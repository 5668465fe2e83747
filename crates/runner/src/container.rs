//! The arguments that start a container: this program inside the image, with the attempt on its
//! stdin.

use std::path::Path;
use towline_core::cluster::GpuMake;
use towline_core::resolve::Runtime;
use towline_wire::runner::{Assignment, ContainerOrder};

/// The path of this program inside the container.
const PROGRAM_PATH_INSIDE: &str = "/.towline-runner";

/// The user and group that run the container on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// The arguments of the runtime's program.
pub(crate) fn arguments(
    order: &ContainerOrder,
    assignment: &Assignment,
    folder: &str,
    program: &str,
    user: User,
) -> Vec<String> {
    let mut arguments = match order.container.runtime {
        Runtime::Podman | Runtime::Docker => {
            podman_or_docker_arguments(order, assignment, program, user)
        }
        Runtime::Apptainer => apptainer_arguments(order, assignment, program),
    };
    arguments.extend([
        PROGRAM_PATH_INSIDE.to_owned(),
        crate::INNER_VERB.to_owned(),
        folder.to_owned(),
    ]);
    arguments
}

fn podman_or_docker_arguments(
    order: &ContainerOrder,
    assignment: &Assignment,
    program: &str,
    user: User,
) -> Vec<String> {
    let container = &order.container;
    let mut arguments = [
        "run",
        "--rm",
        "-i",
        "--network",
        "host",
        "--ipc",
        "host",
        "--security-opt",
        "label=disable",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.extend([
        "--name".to_owned(),
        name(assignment),
        "--workdir".to_owned(),
        "/".to_owned(),
    ]);
    if container.runtime == Runtime::Podman {
        // In our own control group its memory is counted with ours, and it ends with us.
        if !has_cgroups_option(order) {
            arguments.push("--cgroups=disabled".to_owned());
        }
        if user.user != 0 {
            arguments.push("--userns=keep-id".to_owned());
        }
    } else if user.user != 0 {
        arguments.extend(["--user".to_owned(), format!("{}:{}", user.user, user.group)]);
    }
    arguments.extend(gpu_arguments(container.runtime, assignment));
    for bind in &order.binds {
        arguments.extend(["--volume".to_owned(), format!("{bind}:{bind}")]);
    }
    arguments.extend([
        "--volume".to_owned(),
        format!("{program}:{PROGRAM_PATH_INSIDE}:ro"),
        "--entrypoint".to_owned(),
        String::new(),
    ]);
    arguments.extend(container.options.iter().cloned());
    if Path::new(&container.image).is_absolute() {
        // A folder. Writes go to an overlay that is removed at the end.
        arguments.extend(["--rootfs".to_owned(), format!("{}:O", container.image)]);
    } else {
        arguments.push(container.image.clone());
    }
    arguments
}

fn apptainer_arguments(
    order: &ContainerOrder,
    assignment: &Assignment,
    program: &str,
) -> Vec<String> {
    let container = &order.container;
    let mut arguments = [
        "exec",
        "--no-home",
        "--writable-tmpfs",
        "--cleanenv",
        "--pwd",
        "/",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.extend(gpu_arguments(container.runtime, assignment));
    for bind in &order.binds {
        arguments.extend(["--bind".to_owned(), format!("{bind}:{bind}")]);
    }
    arguments.extend([
        "--bind".to_owned(),
        format!("{program}:{PROGRAM_PATH_INSIDE}:ro"),
    ]);
    arguments.extend(container.options.iter().cloned());
    let is_local = Path::new(&container.image).is_absolute() || container.image.contains("://");
    arguments.push(if is_local {
        container.image.clone()
    } else {
        format!("docker://{}", container.image)
    });
    arguments
}

/// Part of podman's error when its low-level runtime is `runc`, which always makes a control group.
/// `crun` need not.
const NO_CGROUPS_ERROR: &str = "NoCgroups";

/// The option that makes podman start the container after that error, unless the job has one
/// already.
pub(crate) fn other_cgroups(order: &ContainerOrder, stderr: &str) -> Option<&'static str> {
    let is_podman = order.container.runtime == Runtime::Podman;
    (is_podman && !has_cgroups_option(order) && stderr.contains(NO_CGROUPS_ERROR))
        .then_some("--cgroups=enabled")
}

fn has_cgroups_option(order: &ContainerOrder) -> bool {
    let options = &order.container.options;
    options.iter().any(|option| option.starts_with("--cgroups"))
}

/// The name of the container.
pub(crate) fn name(assignment: &Assignment) -> String {
    let node = assignment
        .gang
        .as_ref()
        .map_or_else(String::new, |place| format!("-{}", place.node));
    format!("tow-{}-{}{node}", assignment.run, assignment.attempt)
}

fn gpu_arguments(runtime: Runtime, assignment: &Assignment) -> Vec<String> {
    let gpus: Vec<u32> = assignment.gpus.concat();
    let list = gpus
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",");
    match (runtime, assignment.gpu_make) {
        _ if gpus.is_empty() => Vec::new(),
        (_, GpuMake::Declared) => Vec::new(),
        (Runtime::Apptainer, GpuMake::Amd) => vec!["--rocm".into()],
        (Runtime::Apptainer, GpuMake::Nvidia) => vec!["--nv".into()],
        (_, GpuMake::Amd) => ["--device", "/dev/kfd", "--device", "/dev/dri"]
            .map(str::to_owned)
            .into(),
        (Runtime::Docker, GpuMake::Nvidia) => vec!["--gpus".into(), format!("\"device={list}\"")],
        (Runtime::Podman, GpuMake::Nvidia) => gpus
            .iter()
            .flat_map(|gpu| ["--device".to_owned(), format!("nvidia.com/gpu={gpu}")])
            .collect(),
    }
}

/// The attempt as the runner inside gets it: no code to lay out, no container. GPUs are numbered
/// from 0 where the runtime shows only those of the run.
pub(crate) fn inner(assignment: &Assignment) -> Assignment {
    let mut inner = assignment.clone();
    inner.code = None;
    inner.data = None;
    inner.memory = None;
    inner.time = None;
    inner.hold_on_failure = None;
    if let Some(order) = inner.container.take() {
        // Processes inside receive only the signals that we forward.
        inner.signals_reach_all = false;
        let renumbered =
            assignment.gpu_make == GpuMake::Nvidia && order.container.runtime != Runtime::Apptainer;
        if renumbered {
            let mut next = 0..;
            inner.gpus = assignment
                .gpus
                .iter()
                .map(|node| node.iter().map(|_| next.next().unwrap_or(0)).collect())
                .collect();
        }
    }
    inner
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::RunId;
    use towline_core::command::Program;
    use towline_core::resolve::{Container, Shape};
    use towline_wire::runner::Variables;

    fn assignment(runtime: Runtime, image: &str) -> Assignment {
        Assignment {
            run: RunId::new("x", 1, 2),
            attempt: 3,
            shape: Shape {
                nodes: 2,
                ranks_per_node: 1,
                once: false,
                gpus_per_node: 1,
                cpus_per_node: None,
                memory: None,
            },
            program: Program::Argv(vec!["true".into()]),
            setup: Vec::new(),
            workdir: "/w".into(),
            umask: 0o022,
            limits: None,
            variables: Variables([("TOKEN".to_owned(), "canary".to_owned())].into()),
            gpus: vec![vec![5], vec![7]],
            gpu_make: GpuMake::Nvidia,
            time: Some(1),
            hold_on_failure: None,
            memory: None,
            grace_millis: 1,
            code: None,
            container: Some(ContainerOrder {
                container: Container {
                    runtime,
                    program: "/usr/bin/x".into(),
                    image: image.into(),
                    options: vec!["--ulimit".into(), "nofile=1:1".into()],
                },
                binds: vec!["/runs/a b".into()],
                variables: Variables::default(),
            }),
            data: None,
            intent_is_durable: false,
            signals_reach_all: false,
            scripts_hold_tokens: false,
            gang: None,
        }
    }

    fn line(runtime: Runtime, image: &str) -> String {
        let assignment = assignment(runtime, image);
        let order = assignment.container.clone().expect("a container");
        arguments(
            &order,
            &assignment,
            "/runs/a b",
            "/bin/tow",
            User {
                user: 1000,
                group: 100,
            },
        )
        .join(" ")
    }

    #[test]
    fn each_runtime_is_spoken_to_in_its_own_words_and_no_variable_is_among_them() {
        let podman = line(Runtime::Podman, "pytorch:2");
        assert!(
            podman.contains(
                "--userns=keep-id --device nvidia.com/gpu=5 --device \
            nvidia.com/gpu=7 --volume /runs/a b:/runs/a b"
            ),
            "{podman}"
        );
        assert!(
            podman.ends_with("--ulimit nofile=1:1 pytorch:2 /.towline-runner __inner /runs/a b"),
            "{podman}"
        );
        assert!(line(Runtime::Podman, "/roots/debian").contains("--rootfs /roots/debian:O"));
        let docker = line(Runtime::Docker, "pytorch:2");
        assert!(
            docker.contains("--user 1000:100 --gpus \"device=5,7\""),
            "{docker}"
        );
        let apptainer = line(Runtime::Apptainer, "pytorch:2");
        assert!(
            apptainer.starts_with("exec ")
                && apptainer.contains("--nv")
                && apptainer.contains(" docker://pytorch:2 /.towline-runner"),
            "{apptainer}"
        );
        assert!(line(Runtime::Apptainer, "/images/x.sif").contains(" /images/x.sif "));
        assert!(![podman, docker, apptainer].concat().contains("canary"));
    }

    #[test]
    fn podman_with_a_runtime_that_needs_control_groups_is_asked_again_once() {
        let refused =
            "Error: requested OCI runtime runc is not compatible with NoCgroups: invalid argument";
        let mut order = assignment(Runtime::Podman, "x")
            .container
            .expect("a container");
        assert!(line(Runtime::Podman, "x").contains("--cgroups=disabled"));
        assert_eq!(other_cgroups(&order, "Error: no such image"), None);
        let option = other_cgroups(&order, refused).expect("an option that helps");
        order.container.options.insert(0, option.to_owned());
        assert_eq!(other_cgroups(&order, refused), None);
        let again = arguments(
            &order,
            &assignment(Runtime::Podman, "x"),
            "/r",
            "/bin/tow",
            User { user: 0, group: 0 },
        )
        .join(" ");
        assert!(
            again.contains("--cgroups=enabled") && !again.contains("--cgroups=disabled"),
            "{again}"
        );
        assert_eq!(
            other_cgroups(
                &assignment(Runtime::Docker, "x")
                    .container
                    .expect("a container"),
                refused
            ),
            None
        );
    }

    #[test]
    fn inside_the_gpus_of_the_run_are_all_there_are() {
        let inside = inner(&assignment(Runtime::Podman, "x"));
        assert_eq!(inside.gpus, [[0], [1]]);
        assert!(inside.container.is_none() && inside.time.is_none());
        assert_eq!(inner(&assignment(Runtime::Apptainer, "x")).gpus, [[5], [7]]);
    }
}
