#!/bin/sh
# A `RUSTC_WORKSPACE_WRAPPER` that compiles the crates of the workspace, and only them, with their failpoints.
exec "$@" --cfg batch_failpoints
