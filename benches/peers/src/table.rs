//! The table of the result.

use std::collections::BTreeMap;

/// What one run of a program measured.
#[derive(Clone, Copy)]
pub struct Run {
    /// The whole process, in seconds.
    pub process: f64,
    /// The job as the program itself measures it, in seconds.
    pub job: f64,
    /// The maximum resident memory, in MiB.
    pub memory: f64,
}

/// The runs of each program in each job, by round.
pub type Runs = BTreeMap<(String, String), Vec<Run>>;

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

/// Prints a job's rows: medians, and medians of the ratios to the first program within a round.
pub fn print(
    title: &str,
    job: &str,
    programs: &[&str],
    runs: &Runs,
    reasons: &dyn Fn(&str, &str) -> Option<&'static str>,
) {
    println!("\n**{title}**\n");
    println!("| program | process | ratio | job alone | ratio | memory |\n|---|---|---|---|---|---|");
    let Some(base) = runs.get(&(job.to_owned(), programs[0].to_owned())) else {
        return;
    };
    for program in programs {
        if let Some(reason) = reasons(program, job) {
            println!("| {program} | {reason} | | | | |");
        } else if let Some(own) = runs.get(&(job.to_owned(), (*program).to_owned())) {
            let of = |what: fn(&Run) -> f64| median(own.iter().map(what).collect());
            let ratio = |what: fn(&Run) -> f64| {
                median(
                    own.iter()
                        .zip(base)
                        .map(|(run, base)| what(run) / what(base))
                        .collect(),
                )
            };
            println!(
                "| {program} | {:.3} s | {:.2} | {:.3} s | {:.2} | {:.0} MiB |",
                of(|run| run.process),
                ratio(|run| run.process),
                of(|run| run.job),
                ratio(|run| run.job),
                of(|run| run.memory)
            );
        }
    }
}
