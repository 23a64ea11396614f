//! From hours to payslips: the table, the processor, the writer, the decider, and the batchlets before and after them.

use batch_examples::money::Cents;
use batch_runtime::execution::StepExecution;
use batch_runtime::prelude::*;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use super::hours::{BadHours, Hours};

diesel::table! {
    payslip (employee, month) {
        employee -> Text,
        month -> Text,
        cents -> BigInt,
        released -> Bool,
    }
}

/// Creates the table. It is in the database of the job repository, so that payslips and checkpoints are committed together.
#[derive(BatchArtifact)]
struct PrepareTables {
    #[batch_context]
    job: JobContext,
}

#[batchlet("prepareTables")]
impl PrepareTables {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        self.job.connect()?.sqlite()?.batch_execute(
            "CREATE TABLE IF NOT EXISTS payslip (
                 employee TEXT, month TEXT, cents BIGINT NOT NULL, released BOOLEAN NOT NULL, PRIMARY KEY (employee, month))",
        )?;
        Ok("PREPARED".into())
    }

    #[cancel]
    fn stop(&self) {}
}

/// The pay of an employee.
#[derive(Clone, Debug)]
struct Wage {
    employee: String,
    cents: i64,
}

/// Computes the pay: hours beyond the regular ones count one and a half times.
#[derive(BatchArtifact)]
struct WageProcessor {
    #[batch_property(name = "regular.hours")]
    regular: i64,
}

#[item_processor("wageProcessor")]
impl WageProcessor {
    #[process_item]
    fn process_item(&mut self, row: &Hours) -> Result<Option<Wage>, BadHours> {
        let Hours {
            employee,
            hours,
            rate: Cents(rate),
        } = row;
        if *hours < 0 {
            return Err(BadHours(format!("{hours} hours")));
        }
        let overtime = (hours - self.regular).max(0);
        Ok(Some(Wage {
            employee: employee.clone(),
            cents: hours * rate + overtime * rate / 2,
        }))
    }
}

/// Inserts payslips in the chunk's transaction, which JTA would provide in Java.
#[derive(BatchArtifact)]
struct PayslipWriter {
    #[batch_property]
    month: String,
}

#[item_writer("payslipWriter")]
impl PayslipWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write_items(&mut self, wages: &[Wage], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let rows: Vec<_> = wages
            .iter()
            .map(|wage| {
                (
                    payslip::employee.eq(&wage.employee),
                    payslip::month.eq(&self.month),
                    payslip::cents.eq(wage.cents),
                    payslip::released.eq(false),
                )
            })
            .collect();
        diesel::insert_into(payslip::table)
            .values(rows)
            .execute(tx.sqlite()?)?;
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint_info(&self) {}
}

/// Releases the payslips of the month.
#[derive(BatchArtifact)]
struct ReleasePayslips {
    #[batch_property]
    month: String,
    #[batch_context]
    job: JobContext,
}

#[batchlet("releasePayslips")]
impl ReleasePayslips {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let mut connection = self.job.connect()?;
        let of_month = payslip::table.filter(payslip::month.eq(&self.month));
        let released = diesel::update(of_month)
            .set(payslip::released.eq(true))
            .execute(connection.sqlite()?)?;
        println!("released {released} payslips");
        Ok("RELEASED".into())
    }

    #[cancel]
    fn stop(&self) {}
}

/// Compares the wages of the month with the budget.
#[derive(BatchArtifact)]
struct BudgetDecider {
    #[batch_property]
    month: String,
    #[batch_property]
    budget: Cents,
    #[batch_context]
    job: JobContext,
}

#[decider("budgetDecider")]
impl BudgetDecider {
    #[decide]
    fn decide(&mut self, steps: &[StepExecution]) -> Result<String, BatchError> {
        let mut connection = self.job.connect()?;
        let wages = payslip::table
            .filter(payslip::month.eq(&self.month))
            .select(payslip::cents);
        let wages: Vec<i64> = wages.load(connection.sqlite()?)?;
        let wages = Cents(wages.iter().sum());
        println!(
            "after `{}`: wages {wages}, budget {}",
            steps[0].step_name, self.budget
        );
        Ok(if wages <= self.budget {
            "WITHIN BUDGET".into()
        } else {
            format!("OVER BUDGET of {}", self.budget)
        })
    }
}
