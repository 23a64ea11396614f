//! The run that started this process: `OPENLINEAGE_CONTEXT`, or `OPENLINEAGE_PARENT_ID` and `OPENLINEAGE_ROOT_PARENT_ID`.

use serde_json::{Value, json};

const CONTEXT: &str = "OPENLINEAGE_CONTEXT";
const PARENT: &str = "OPENLINEAGE_PARENT_ID";
const ROOT: &str = "OPENLINEAGE_ROOT_PARENT_ID";

/// A run of another job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunOf {
    pub(crate) namespace: String,
    pub(crate) job: String,
    pub(crate) run: String,
}

impl RunOf {
    /// Returns the fields `run` and `job` of a parent facet.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "run": {"runId": self.run},
            "job": {"namespace": self.namespace, "name": self.job},
        })
    }

    /// Parses `NAMESPACE/JOB/RUN`. A namespace may be a URL.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().rsplitn(3, '/');
        let (run, job, namespace) = (parts.next()?, parts.next()?, parts.next()?);
        let is_valid = is_uuid(run) && !job.is_empty() && !namespace.is_empty();
        is_valid.then(|| Self {
            namespace: namespace.to_owned(),
            job: job.to_owned(),
            run: run.to_owned(),
        })
    }

    fn of_json(value: &Value) -> Option<Self> {
        let text = |pointer| value.pointer(pointer).and_then(Value::as_str);
        let found = Self {
            namespace: text("/job/namespace")?.to_owned(),
            job: text("/job/name")?.to_owned(),
            run: text("/run/runId")?.to_owned(),
        };
        is_uuid(&found.run).then_some(found)
    }
}

/// Returns whether a text is a UUID.
pub(crate) fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// The runs above a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parents {
    /// The run that started this process.
    pub(crate) parent: Option<RunOf>,
    /// The run at the top.
    pub(crate) root: Option<RunOf>,
}

impl Parents {
    /// Reads the variables. Without a root, the parent is one.
    pub(crate) fn read(variable: &dyn Fn(&str) -> Option<String>, problems: &mut Vec<String>) -> Self {
        if let Some(context) = variable(CONTEXT) {
            match Self::of_context(&context) {
                Some(found) => return found,
                None => problems.push(format!(
                    "ignoring {CONTEXT}: expected JSON such as `{{\"parent\": {{\"run\": {{\"runId\": UUID}}, \"job\": {{\"namespace\": .., \
                     \"name\": ..}}}}}}`"
                )),
            }
        }
        let mut read = |name: &str| {
            let value = variable(name)?;
            let found = RunOf::parse(&value);
            if found.is_none() {
                problems.push(format!(
                    "ignoring {name}=`{}`: expected `NAMESPACE/JOB/RUN`, where RUN is a UUID",
                    value.escape_debug()
                ));
            }
            found
        };
        let parent = read(PARENT);
        let root = read(ROOT).filter(|_| parent.is_some());
        Self {
            root: root.or_else(|| parent.clone()),
            parent,
        }
    }

    fn of_context(text: &str) -> Option<Self> {
        let context: Value = serde_json::from_str(text).ok()?;
        let above = context.get("parent")?;
        let parent = RunOf::of_json(above)?;
        let root = above.get("root").and_then(RunOf::of_json);
        Some(Self {
            root: Some(root.unwrap_or_else(|| parent.clone())),
            parent: Some(parent),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11";
    const OTHER: &str = "11111111-3c3c-1a1a-2b2b-c1b95c24ff11";

    fn read(variables: &[(&str, &str)]) -> (String, Vec<String>) {
        let mut problems = Vec::new();
        let parents = Parents::read(
            &|name| {
                let found = variables.iter().find(|(of, _)| *of == name);
                found.map(|(_, value)| (*value).to_owned())
            },
            &mut problems,
        );
        let shown = |run: Option<RunOf>| {
            run.map_or("-".to_owned(), |run| {
                format!("{} {} {}", run.namespace, run.job, &run.run[..2])
            })
        };
        (
            format!("{}, {}", shown(parents.parent), shown(parents.root)),
            problems,
        )
    }

    // Spec: LIN-04
    #[test]
    fn parents_have_two_forms() {
        let parent = format!("airflow/dag.task/{RUN}");
        let root = format!("https://host/dag/{OTHER}");
        let both = [(PARENT, parent.as_str()), (ROOT, root.as_str())];
        assert_eq!(read(&[]).0, "-, -");
        assert_eq!(read(&both[..1]).0, "airflow dag.task f9, airflow dag.task f9");
        assert_eq!(read(&both).0, "airflow dag.task f9, https://host dag 11");
        assert_eq!(read(&both[1..]).0, "-, -");
        let job = r#""job": {"namespace": "n", "name": "a/b"}"#;
        let context = format!(
            r#"{{"parent": {{"run": {{"runId": "{OTHER}"}}, {job}, "root": {{"run": {{"runId": "{RUN}"}}, {job}}}}}}}"#
        );
        assert_eq!(read(&[(CONTEXT, &context), both[0]]).0, "n a/b 11, n a/b f9");
    }

    // Spec: LIN-04
    #[test]
    fn malformed_parents_are_problems() {
        for malformed in [
            "dag/task",
            "airflow/dag/1",
            "/dag/f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11",
        ] {
            let (parents, problems) = read(&[(PARENT, malformed)]);
            assert_eq!(parents, "-, -");
            let expected = format!(
                "ignoring OPENLINEAGE_PARENT_ID=`{malformed}`: expected `NAMESPACE/JOB/RUN`, where RUN is a UUID"
            );
            assert_eq!(problems, [expected]);
        }
        let parent = format!("airflow/dag.task/{RUN}");
        let (parents, problems) = read(&[(CONTEXT, "{}"), (PARENT, &parent)]);
        assert_eq!(parents, "airflow dag.task f9, airflow dag.task f9");
        assert!(
            problems[0].starts_with("ignoring OPENLINEAGE_CONTEXT: expected JSON"),
            "{problems:?}"
        );
    }
}
