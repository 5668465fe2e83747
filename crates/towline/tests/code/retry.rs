//! A retry gets the tree that was submitted, and what the attempt before it made.

use super::home;

#[test]
fn a_retry_finds_its_code_as_it_was_and_its_own_files_beside_it() {
    let home = home();
    home.write(
        "code.sh",
        "if [ -e checkpoint ]; then cat keep; exit 0; fi\necho step > \
        checkpoint\necho spoiled > keep\nrm gone\nmkdir -p more; mv gone2 more/ \necho 'exit 9' >> \
            code.sh\nexit 3\n",
    );
    home.write("keep", "as submitted\n");
    home.write("gone", "");
    home.write("gone2", "");
    home.write(
        "job.yaml",
        "command: [sh, -c, 'sh code.sh && ls']\nretry: {when: [exit_code], max: 3}\n",
    );
    let run = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    home.tow(["wait", &run]).ok();
    assert_eq!(home.show(&run)["attempt"], 2);
    let log = home.tow(["logs", &run, "--attempt", "2"]).ok().stdout;
    assert_eq!(
        log,
        "as submitted\ncheckpoint\ncode.sh\ngone\ngone2\njob.yaml\nkeep\nmore\n"
    );
    // What the first attempt had made of it is not lost.
    home.tow(["get", &run, "changed/attempt-1/keep", "--to", "got"])
        .ok();
    assert_eq!(home.read("got/changed/attempt-1/keep"), "spoiled\n");
}

#[test]
fn a_retry_is_not_led_elsewhere_by_links_of_the_attempt_before() {
    let home = home();
    home.write("src/a", "a");
    home.write("src/deep/b", "b");
    home.write(
        "job.yaml",
        "command: [sh, -c, 'if [ $TOW_ATTEMPT = 1 ]; then mv src moved; ln -s \
        moved src; exit 3; fi; cat src/a src/deep/b; test ! -L src']\nretry: \
            {when: [exit_code], max: 2}\n",
    );
    let run = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    home.tow(["wait", &run]).ok();
    assert_eq!(home.tow(["logs", &run, "--attempt", "2"]).ok().stdout, "ab");
    // The whole tree in another place: that place is not touched.
    let elsewhere = home.path("elsewhere");
    std::fs::create_dir_all(elsewhere.join("src")).unwrap();
    std::fs::write(elsewhere.join("src/a"), "theirs").unwrap();
    let home = home.with("ELSEWHERE", &elsewhere.display().to_string());
    home.write(
        "job.yaml",
        "command: [sh, -c, 'if [ $TOW_ATTEMPT = 1 ]; then rm -rf \
        $TOW_RUN_DIR/code; ln -s $ELSEWHERE $TOW_RUN_DIR/code; exit 3; fi; cat src/a']\nretry: \
            {when: [exit_code], max: 2}\n",
    );
    let run = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    home.tow(["wait", &run]).ok();
    assert_eq!(home.tow(["logs", &run, "--attempt", "2"]).ok().stdout, "a");
    assert_eq!(
        std::fs::read_to_string(elsewhere.join("src/a")).unwrap(),
        "theirs"
    );
}

#[test]
fn a_preempted_run_comes_back_to_its_own_folder() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 1}\n");
    home.write(
        "job.sh",
        "if [ -e mark ]; then echo back; exit 0; fi; touch mark; sleep 100",
    );
    let basic = home
        .tow(["submit", "--tier", "basic", "--cpus", "1", "sh", "job.sh"])
        .ok()
        .id();
    home.wait_for_state(&basic, "running");
    towline_testkit::until("the first attempt to have begun", || {
        home.state()
            .code(&basic.parse_id())
            .join("mark")
            .exists()
            .then_some(())
    });
    home.tow(["run", "--tier", "premium", "--cpus", "1", "true"])
        .ok();
    home.tow(["wait", &basic]).ok();
    assert_eq!(
        home.tow(["logs", &basic, "--attempt", "2"]).ok().stdout,
        "back\n"
    );
}

trait ParseId {
    fn parse_id(&self) -> towline_core::RunId;
}

impl ParseId for String {
    fn parse_id(&self) -> towline_core::RunId {
        towline_core::RunId::try_from(self.clone()).unwrap()
    }
}
