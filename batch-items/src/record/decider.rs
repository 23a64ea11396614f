//! A decider whose result is an expression.

use std::str::FromStr;

use batch_runtime::prelude::*;

use super::expression::Expression;
use super::value::{Record, Value};

/// A decider that evaluates an expression; registered as `expressionDecider`.
///
/// | property | default | |
/// |---|---|---|
/// | `expression` | required | the result, in the syntax of SQL: `case when write_count = 0 then 'EMPTY' else 'LOADED' end` |
///
/// The expression can use these fields of the element before the decision:
///
/// | field | |
/// |---|---|
/// | `batch_status`, `exit_status` | its statuses |
/// | `read_count`, `write_count`, `filter_count` | after a step: the items read, written and filtered, restarts included, since the step last completed; skipped reads are not in `read_count` |
/// | `read_skip_count`, `process_skip_count`, `write_skip_count` | after a step: the items that were skipped |
///
/// ```xml
/// <decision id="quality" ref="expressionDecider">
///   <properties>
///     <property name="expression" value="case when read_skip_count > read_count / 100 then 'REVIEW' else 'GOOD' end"/>
///   </properties>
///   <next on="REVIEW" to="review"/>
///   <next on="GOOD" to="report"/>
/// </decision>
/// ```
#[derive(BatchArtifact)]
pub struct ExpressionDecider {
    #[batch_property(name = "expression")]
    expression: Decision,
    #[batch_context]
    step: Option<StepContext>,
    #[batch_context]
    flow: Option<FlowContext>,
    #[batch_context]
    split: Option<SplitContext>,
}

/// The names of the counters, beside those of the statuses.
const COUNTERS: [&str; 6] = [
    "read_count",
    "write_count",
    "filter_count",
    "read_skip_count",
    "process_skip_count",
    "write_skip_count",
];
const STATUSES: [&str; 2] = ["batch_status", "exit_status"];

/// An expression on the fields of a decision.
struct Decision(Expression);

impl FromStr for Decision {
    type Err = String;

    fn from_str(source: &str) -> Result<Self, String> {
        let (expression, fields) = Expression::with_fields(source)?;
        let known = [&STATUSES[..], &COUNTERS[..]].concat();
        match fields.iter().find(|field| !known.contains(&field.as_str())) {
            Some(field) => Err(format!(
                "unknown field `{field}`; a decision has `{}`",
                known.join("`, `")
            )),
            None => Ok(Self(expression)),
        }
    }
}

#[decider("expressionDecider")]
impl ExpressionDecider {
    /// Returns the value of the expression.
    #[decide]
    pub fn decide(&mut self) -> Result<String, BatchError> {
        let value = self.expression.0.value(&self.before())?;
        match value {
            Value::Null => Err(BatchError::msg(
                "`expression` is null; add an `else`, or use `coalesce`",
            )),
            value => Ok(value.to_string()),
        }
    }

    /// Returns the fields of the element before the decision.
    fn before(&self) -> Record {
        let statuses = match (&self.step, &self.flow, &self.split) {
            (Some(step), ..) => Some((step.batch_status(), step.exit_status())),
            (_, Some(flow), _) => Some((flow.batch_status(), flow.exit_status())),
            (.., Some(split)) => Some((split.batch_status(), split.exit_status())),
            (None, None, None) => None,
        };
        let mut record = Record::new();
        if let Some((batch_status, exit_status)) = statuses {
            let exit_status = exit_status.unwrap_or_else(|| batch_status.to_string());
            record.set(STATUSES[0], batch_status.to_string());
            record.set(STATUSES[1], exit_status);
        }
        if let Some(step) = &self.step {
            let counters = step.counters();
            let values = [
                counters.reads,
                counters.writes,
                counters.filters,
                counters.read_skips,
                counters.process_skips,
                counters.write_skips,
            ];
            for (name, value) in COUNTERS.into_iter().zip(values) {
                record.set(name, value);
            }
        }
        record
    }
}
