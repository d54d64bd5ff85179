//! One binary for every test that talks to real processes, so that the harness is linked once.

mod harness;
