//! Batchlets that check the properties they get.

use std::convert::Infallible;
use std::str::FromStr;

use batch_runtime::prelude::*;

/// Returns its properties as the exit status of the step, as `name=value` separated by `;`. The TCK reads one of them by
/// its name, through a system property and reflection.
#[derive(BatchArtifact)]
struct WithProperties {
    #[batch_property(name = "myProperty1", value = "")]
    my_property1: String,
    #[batch_property(name = "myProperty2", value = "to be replaced")]
    my_property2: String,
    #[batch_property(name = "mySubmittedProp", value = "to be replaced")]
    submitted: String,
    #[batch_property(name = "batchletProp", value = "to be replaced")]
    batchlet_property: String,
    /// The test asks for it by this name and by the property's name.
    #[batch_property(name = "myProperty4", value = "")]
    property4: String,
    #[batch_property(name = "myConcatProp", value = "")]
    concatenated: String,
    #[batch_property(name = "myJavaSystemProp", value = "")]
    system: String,
    #[batch_property(name = "defaultPropName1", value = "")]
    default1: String,
    #[batch_property(name = "defaultPropName2", value = "")]
    default2: String,
}

#[batchlet("myBatchletWithPropertiesImpl")]
impl WithProperties {
    #[process]
    fn process(&self) -> String {
        let values = [
            ("myProperty1", &self.my_property1),
            ("myProperty2", &self.my_property2),
            ("mySubmittedProp", &self.submitted),
            ("batchletProp", &self.batchlet_property),
            ("property4", &self.property4),
            ("myProperty4", &self.property4),
            ("myConcatProp", &self.concatenated),
            ("myJavaSystemProp", &self.system),
            ("defaultPropName1", &self.default1),
            ("defaultPropName2", &self.default2),
        ];
        values.map(|(name, value)| format!("{name}={value}")).join(";")
    }

    #[cancel]
    fn cancel(&self) {}
}

/// A flag as Java reads it: every text but `true` is false.
struct Flag(bool);

impl FromStr for Flag {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.eq_ignore_ascii_case("true")))
    }
}

/// Checks properties of several types.
#[derive(BatchArtifact)]
struct TypedProperties {
    #[batch_property(name = "stringProp")]
    string: String,
    #[batch_property(name = "booleanProp1")]
    boolean1: Flag,
    #[batch_property(name = "booleanProp2")]
    boolean2: Flag,
    #[batch_property(name = "doubleProp1")]
    double1: f64,
    #[batch_property(name = "doubleProp2")]
    double2: f64,
    #[batch_property(name = "floatProp1")]
    float1: f32,
    #[batch_property(name = "floatProp2")]
    float2: f32,
    #[batch_property(name = "intProp1")]
    int1: i32,
    #[batch_property(name = "intProp2")]
    int2: i32,
    #[batch_property(name = "longProp1")]
    long1: i64,
    #[batch_property(name = "longProp2")]
    long2: i64,
    #[batch_property(name = "shortProp1")]
    short1: i16,
    #[batch_property(name = "shortProp2")]
    short2: i16,
    #[batch_context]
    job: JobContext,
}

impl TypedProperties {
    fn check(&self) -> Result<String, BatchError> {
        let are_good = self.string == "HappyBatchProperties"
            && (self.boolean1.0, self.boolean2.0) == (true, false)
            && (self.double1, self.double2) == (234.432, 123.321)
            && (self.float1, self.float2) == (11234.432, 11123.321)
            && (self.int1, self.int2) == (7777, 8888)
            && (self.long1, self.long2) == (1_234_567_890_123, 12_345_678_901_234)
            && (self.short1, self.short2) == (333, 444);
        if !are_good {
            return Err(BatchError::msg("a property has another value"));
        }
        self.job.set_exit_status(Some("GOOD"));
        Ok("OK".into())
    }
}

/// Declares the batchlet under one of its three names.
macro_rules! typed {
    ($type:ident, $name:literal) => {
        /// Checks properties of several types.
        #[derive(BatchArtifact)]
        struct $type {
            #[batch_artifact]
            properties: TypedProperties,
        }

        #[batchlet($name)]
        impl $type {
            #[process]
            fn process(&self) -> Result<String, BatchError> {
                self.properties.check()
            }

            #[cancel]
            fn cancel(&self) {}
        }
    };
}

typed!(ByBeanName, "CDIDependentScopedBatchletPropsNonString");
typed!(ById, "dependentScopedBatchletPropsNonString");
typed!(
    ByClass,
    "com.ibm.jbatch.tck.artifacts.cdi.DependentScopedBatchletPropsNonString"
);
