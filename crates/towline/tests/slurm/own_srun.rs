//! Scripts that call `srun` themselves: it starts as many tasks as it did under `sbatch`.

use crate::lab::Lab;

#[test]
fn an_imported_script_calls_srun_on_several_nodes() {
    let lab = Lab::shared();
    lab.home.write(
        "train.sh",
        "#!/bin/bash\n\
        #SBATCH --nodes=2\n\
        #SBATCH --ntasks-per-node=2\n\
        #SBATCH --cpus-per-task=2\n\
        #SBATCH --gpus-per-node=1\n\
        #SBATCH --time=00:10:00\n\
        env | grep -E 'SLURM_OVERLAP|TOW_BATCH_|CPU_BIND' && exit 9\n\
        srun bash -c 'echo $SLURM_PROCID of $SLURM_NTASKS on $(hostname) \
            with $SLURM_CPUS_PER_TASK CPUs and GPU $CUDA_VISIBLE_DEVICES'\n\
        # Two steps of one node each share the job with the runner.\n\
        srun --nodes=1 --ntasks=1 echo one & srun --nodes=1 --ntasks=1 echo two & wait\n\
        srun --ntasks=1 --nodes=1 sh -c 'exit 7'\n",
    );
    lab.tow(["import", "sbatch", "train.sh"]).ok();
    let run = lab.tow(["submit", "-f", "train.tow.yaml"]).ok().id();
    let ended = lab.ended(&run);
    assert_eq!(ended["exit_code"], 7, "{ended}");
    let log = lab.tow(["logs", &run]).ok().stdout;
    let mut tasks: Vec<&str> = log.lines().filter(|line| line.contains(" of ")).collect();
    tasks.sort_unstable();
    assert_eq!(tasks.len(), 4, "{log}");
    for (number, task) in tasks.iter().enumerate() {
        assert!(task.starts_with(&format!("{number} of 4 on c")), "{log}");
        assert!(task.contains("with 2 CPUs and GPU "), "{log}");
    }
    let hosts: std::collections::BTreeSet<&str> = tasks
        .iter()
        .filter_map(|task| task.split(' ').nth(4))
        .collect();
    assert_eq!(hosts.len(), 2, "{log}");
    assert!(log.contains("one\n") && log.contains("two\n"), "{log}");
}
