// Spec: BPROP-02
pub struct Sample {
    #[batch_property(name = "file")]
    pub file: String,
}

fn main() {}
