//! The roles around partitions and splits.

use super::{Method, NOTICE, ROLE, Role, Shape, Told};

pub(crate) static PARTITION_ALGORITHM: Role = Role {
    attribute: "partition_algorithm",
    trait_name: "PartitionAlgorithm",
    methods: &[Method {
        attribute: "calculate_partitions",
        section: "5.5.1.1",
        shape: Shape::Plan,
        required: true,
        signature: "fn calculate(&mut self) -> Result<PartitionPlan, E>",
        usual_names: &["calculate", "partitions", "plan"],
        ..NOTICE
    }],
    ..ROLE
};

pub(crate) static LOGICAL_TX: Role = Role {
    attribute: "logical_tx",
    trait_name: "LogicalTX",
    methods: &[
        Method {
            attribute: "logical_tx_begin",
            section: "5.5.2.1",
            signature: "fn begin(&mut self) -> Result<(), E>",
            ..NOTICE
        },
        Method {
            attribute: "logical_tx_before_completion",
            section: "5.5.2.2",
            signature: "fn before_completion(&mut self) -> Result<(), E>",
            ..NOTICE
        },
        Method {
            attribute: "logical_tx_rollback",
            section: "5.5.2.3",
            shape: Shape::Compensation,
            signature: "fn rollback(&mut self) -> Result<(), E>",
            ..NOTICE
        },
        Method {
            attribute: "logical_tx_after_completion",
            section: "5.5.2.4",
            shape: Shape::Notice(&[Told::Status]),
            signature: "fn after_completion(&mut self, status: &str) -> Result<(), E>",
            ..NOTICE
        },
    ],
    ..ROLE
};

pub(crate) static SUB_JOB_COLLECTOR: Role = Role {
    attribute: "sub_job_collector",
    trait_name: "SubJobCollector",
    methods: &[Method {
        attribute: "collect_sub_job_data",
        section: "5.5.3.1",
        shape: Shape::Collect,
        required: true,
        signature: "fn collect(&mut self) -> Result<Option<P>, E>",
        usual_names: &["collect", "collect_data"],
        ..NOTICE
    }],
    ..ROLE
};

pub(crate) static SUB_JOB_ANALYZER: Role = Role {
    attribute: "sub_job_analyzer",
    trait_name: "SubJobAnalyzer",
    methods: &[
        Method {
            attribute: "analyze_collector_data",
            section: "5.5.4.1",
            shape: Shape::Analyze,
            signature: "fn analyze(&mut self, data: P) -> Result<(), E>",
            ..NOTICE
        },
        Method {
            attribute: "analyze_exit_status",
            section: "5.5.4.2",
            shape: Shape::Notice(&[Told::Status]),
            signature: "fn analyze_exit_status(&mut self, exit_status: &str) -> Result<(), E>",
            ..NOTICE
        },
    ],
    ..ROLE
};
