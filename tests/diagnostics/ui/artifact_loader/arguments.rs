// Spec: LOADER-06, LOADER-13
use batch_runtime::prelude::*;

macro_rules! loaders {
    ($($(#[$attribute:meta])* $name:ident)*) => {$(
        #[derive(Default)]
        struct $name;

        $(#[$attribute])*
        impl BatchArtifactLoader for $name {
            fn load(&self, _: &str) -> Result<Option<LoadedArtifact>, BatchError> {
                Ok(None)
            }
        }
    )*};
}

loaders! {
    #[artifact_loader("Named")] Named
    #[artifact_loader(clas = "x")] Misspelt
    #[artifact_loader(name = "x")] Unknown
    #[artifact_loader(class = "x", class = "y")] Twice
    #[artifact_loader(class = 7)] Number
    #[artifact_loader(class = " ")] Empty
    #[artifact_loader(class)] Bare
}

fn main() {}
