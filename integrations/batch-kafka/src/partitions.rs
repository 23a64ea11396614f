//! The partition algorithm for topics.

use std::num::NonZeroUsize;

use batch_items::ResourceError;
use batch_items::queue::{Fault, Waiting};
use batch_runtime::BatchArtifact;
use batch_runtime::prelude::*;

use super::address::KafkaConnection;
use super::cluster::Cluster;

/// Plans partitions of a step for the partitions of a topic; registered as `kafkaPartitions`.
///
/// It has the properties of [`KafkaConnection`], and:
///
/// | property | default | |
/// |---|---|---|
/// | `topic` | required | the topic |
/// | `partitions.limit` | one for each | the most partitions of the step; each then reads several of the topic |
///
/// Each has the property `partitions`, as a [`KafkaItemReader`](crate::KafkaItemReader). A restart runs the stored plan: a
/// partition that was added to the topic since is read by the next instance.
///
/// ```xml
/// <step id="load">
///   <partition>
///     <algorithm ref="kafkaPartitions">
///       <properties>
///         <property name="servers" value="kafka-1:9092"/>
///         <property name="topic" value="payments"/>
///       </properties>
///     </algorithm>
///   </partition>
///   <chunk reader="PaymentReader" writer="PaymentWriter">
///     <properties>
///       <property name="servers" value="kafka-1:9092"/>
///       <property name="topic" value="payments"/>
///       <property name="partitions" value="${partitions}"/>
///     </properties>
///   </chunk>
/// </step>
/// ```
#[derive(BatchArtifact)]
pub struct KafkaPartitions {
    #[batch_artifact]
    connection: KafkaConnection,
    #[batch_property(name = "topic")]
    topic: String,
    #[batch_property(name = "partitions.limit")]
    limit: Option<NonZeroUsize>,
    #[batch_artifact]
    waiting: Waiting,
}

#[partition_algorithm("kafkaPartitions")]
impl KafkaPartitions {
    /// Returns a partition for each of the topic, or for several of them.
    #[calculate_partitions]
    pub fn plan(&mut self) -> Result<PartitionPlan, ResourceError> {
        let fail = |fault: Fault| {
            let action = format!(
                "plan the partitions of the topic `{}` at {}",
                self.topic,
                self.connection.shown()
            );
            ResourceError::new(action, fault.into_text())
        };
        let access = self
            .connection
            .access()
            .map_err(|problem| fail(Fault::Permanent(problem)))?;
        let cluster = Cluster::connect(access, &self.topic, &self.waiting).map_err(fail)?;
        let numbers: Vec<i32> = cluster.partitions().collect();
        let most = self
            .limit
            .map_or(numbers.len(), NonZeroUsize::get)
            .min(numbers.len());
        let plan = (0..most).map(|part| {
            let own = numbers.iter().skip(part).step_by(most).map(i32::to_string);
            [("partitions", own.collect::<Vec<_>>().join(","))]
        });
        Ok(PartitionPlan::with_properties(plan))
    }
}
