//! A job in a program with tokio: its artifacts use sqlx, whose pool the program has made.
//!
//! ```text
//! cargo run -p async-jobs -- postgres://user@host/database
//! ```
//!
//! The database has the tables `invoice (id bigint, customer text, cents bigint, paid boolean)` and
//! `reminder (invoice bigint, text text)`. Kill the program while it runs and start it again: each reminder is there once.

use std::time::Duration;

use async_jobs::Clients;
use batch_runtime::{BatchRuntime, BatchStatus, embed_jobs};
use sqlx::PgPool;
use tokio::runtime::Handle;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: async-jobs DATABASE_URL")?;
    let runtime = BatchRuntime::builder()
        .jobs(embed_jobs!("jobs"))
        .artifact_loader(Clients {
            pool: PgPool::connect(&url).await?,
        })
        .tokio_handle(Handle::current())
        .build()?;
    let operator = runtime.job_operator();
    let execution = operator.launch_async("reminders", ()).await?;
    tokio::select! {
        ended = operator.wait_async(execution) => {
            let ended = ended?;
            println!("execution {execution} of job reminders: {}", ended.status);
            match ended.status {
                BatchStatus::Completed => Ok(()),
                _ => Err(ended.exit_message.into()),
            }
        }
        signal = tokio::signal::ctrl_c() => {
            signal?;
            runtime.shutdown_async(Duration::from_secs(30)).await?;
            Err("stopped; the next start resumes the job".into())
        }
    }
}
