//! Partition algorithms: a partition for each file, or for each part of a range of keys.

use std::path::{Path, PathBuf};

use batch_runtime::destination::DatabaseName;
use batch_runtime::prelude::*;

use crate::at_most::AtMost;
use crate::error::ResourceError;
use crate::file::{Compression, FileOrder, find_files, literal, redact};
use crate::query::{Parameters, Query, QueryError, load_records};
use crate::record::Value;

/// Plans a partition for each file of a pattern; registered as `filePartitions`.
///
/// | property | default | |
/// |---|---|---|
/// | `resource` | required | the pattern, such as `in/*.csv` |
/// | `order` | `name` | the order of several files: `name`, or `modified` for the oldest first |
/// | `store.options` | none | for URLs of object stores and HTTP: `name=value`, separated by commas; the readers of the partitions need them too |
///
/// Each partition has the properties `resource`, the path or URL of its file, which is the property of a file reader (`[[]` for a `[` in the name,
/// so that it is no pattern), and `file.name`, the name of the file without its directory and extension, for the output: `fx.2024-01-10` of `in/fx.2024-01-10.csv.gz`. If two partitions
/// have the same output, none of them runs. A restart runs the partitions of the stored plan, regardless of the files that there are then.
///
/// ```xml
/// <step id="convert">
///   <partition>
///     <algorithm ref="filePartitions">
///       <properties><property name="resource" value="in/*.csv"/></properties>
///     </algorithm>
///   </partition>
///   <chunk reader="FlightReader" processor="Convert" writer="FlightWriter">
///     <properties><property name="output" value="out/${file.name}.jsonl"/></properties>
///   </chunk>
/// </step>
/// ```
#[derive(BatchArtifact)]
pub struct FilePartitions {
    #[batch_property(name = "resource")]
    resource: PathBuf,
    #[batch_property(name = "order", value = "name")]
    order: FileOrder,
    #[batch_property(name = "store.options")]
    store_options: Vec<String>,
}

#[partition_algorithm("filePartitions")]
impl FilePartitions {
    /// Returns a partition for each file.
    #[calculate_partitions]
    pub fn plan(&mut self) -> Result<PartitionPlan, ResourceError> {
        let pattern = self.resource.to_string_lossy();
        let plan = || format!("plan the partitions of `{}`", redact(&pattern));
        let files = find_files(&pattern, self.order, &self.store_options);
        let files = files.map_err(|error| ResourceError::new(plan(), error))?;
        if files.is_empty() {
            return Err(ResourceError::new(plan(), "no file matches"));
        }
        Ok(PartitionPlan::with_properties(files.into_iter().map(|path| {
            let name = file_name(Path::new(&path));
            [("resource", literal(&path)), ("file.name", name)]
        })))
    }
}

/// Returns the name without its extension, and without the extension of a compression.
fn file_name(path: &Path) -> String {
    let name = Path::new(path.file_name().unwrap_or_default());
    let name = match Compression::of(name) {
        Compression::None => name,
        _ => Path::new(name.file_stem().unwrap_or_default()),
    };
    name.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Plans partitions of about equal ranges of an integer key; registered as `keyRangePartitions`.
///
/// | property | default | |
/// |---|---|---|
/// | `query` | required | selects the smallest and the largest key, which are of an integer type: `SELECT MIN(id), MAX(id) FROM account`. SQLite accepts a fraction in a column of integers, unless the table is `STRICT`: a row whose key is between two ranges would not be read |
/// | `parameters` | none | the values of the parameters, separated by `;`: `region=EU; since='2026-01-01'`. An unquoted number is a number, and an unquoted `true` is a boolean; a text in single quotes may contain `;` |
/// | `database` | the repository | the name or the URL of another database |
/// | `partitions` | `8` | the number of partitions, at most 10,000; fewer, if there are fewer keys |
///
/// Each partition has the properties `low` and `high`, its first and last key:
///
/// ```xml
/// <step id="statements">
///   <partition>
///     <algorithm ref="keyRangePartitions">
///       <properties><property name="query" value="SELECT MIN(id), MAX(id) FROM account"/></properties>
///     </algorithm>
///   </partition>
///   <chunk reader="AccountReader" processor="Statement" writer="StatementWriter">
///     <properties>
///       <property name="query" value="SELECT id, owner FROM account WHERE id BETWEEN :low AND :high"/>
///       <property name="parameters" value="low=${low}; high=${high}"/>
///       <property name="key" value="id"/>
///     </properties>
///   </chunk>
/// </step>
/// ```
#[derive(BatchArtifact)]
pub struct KeyRangePartitions {
    #[batch_property(name = "query")]
    query: Query,
    #[batch_property(name = "parameters", value = "")]
    parameters: Parameters,
    #[batch_property(name = "database", value = "")]
    database: DatabaseName,
    #[batch_property(name = "partitions", value = "8")]
    partitions: AtMost<10_000>,
    #[batch_context]
    job: JobContext,
}

#[partition_algorithm("keyRangePartitions")]
impl KeyRangePartitions {
    /// Returns the ranges.
    #[calculate_partitions]
    pub fn plan(&mut self) -> Result<PartitionPlan, QueryError> {
        let fail = |cause: &str| QueryError::new("plan the partitions", cause);
        let rows = load_records(&self.job, &self.database, &self.query, &self.parameters)?;
        let row = rows.first().ok_or_else(|| fail("the query returns no row"))?;
        let keys: Vec<_> = row.iter().map(|(_, value)| value).collect();
        let ranges = match keys.as_slice() {
            [low, high] if low.is_null() && high.is_null() => vec![(0, -1)],
            [Value::Int(low), Value::Int(high)] if low > high => {
                return Err(fail(&format!(
                    "the smallest key, {low}, is larger than the largest, {high}; select MIN first, then MAX"
                )));
            }
            [Value::Int(low), Value::Int(high)] => ranges(*low, *high, self.partitions.get().get()),
            [low, high] => {
                return Err(fail(&format!(
                    "the keys {low:?} and {high:?} are not of an integer type, and one between two ranges would be in none; if all keys are \
                     integers, convert these in the query, such as by CAST(MIN(id) AS BIGINT)"
                )));
            }
            _ => {
                return Err(fail(
                    "the query has to return two columns, the smallest and the largest key",
                ));
            }
        };
        let properties = |(low, high): (i64, i64)| [("low", low.to_string()), ("high", high.to_string())];
        Ok(PartitionPlan::with_properties(ranges.into_iter().map(properties)))
    }
}

/// Splits a range into at most `count` parts, whose lengths differ by one at most.
fn ranges(low: i64, high: i64, count: u32) -> Vec<(i64, i64)> {
    let length = i128::from(high) - i128::from(low) + 1;
    let count = i128::from(count).min(length).max(1);
    let start = |index: i128| i128::from(low) + length * index / count;
    // Within the range, whose ends are `i64`.
    let key = |key: i128| i64::try_from(key).unwrap_or(high);
    (0..count)
        .map(|index| (key(start(index)), key(start(index + 1) - 1)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_keys_once() {
        assert_eq!(ranges(1, 10, 3), [(1, 3), (4, 6), (7, 10)]);
        assert_eq!(ranges(5, 6, 8), [(5, 5), (6, 6)]);
        assert_eq!(ranges(7, 7, 1), [(7, 7)]);
        let all = ranges(i64::MIN, i64::MAX, 7);
        assert_eq!((all[0].0, all[6].1), (i64::MIN, i64::MAX));
        assert!(all.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
    }

    #[test]
    fn names_of_files_have_no_extensions() {
        assert_eq!(file_name(Path::new("in/flights-1.csv.gz")), "flights-1");
        assert_eq!(file_name(Path::new("in/fx.2024-01-10.csv")), "fx.2024-01-10");
        assert_eq!(file_name(Path::new("in/.hidden")), ".hidden");
    }
}
