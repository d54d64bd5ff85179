//! Nothing survives its runtime: hostile trees, every way to end who started them, and a baseline that must fail.
//!
//! `cargo xtask chaos` plays the same with more rounds; the number stands in `TURNKEEP_CHAOS_ROUNDS`.

mod codex;
mod controls;
mod crowd;
mod matrix;
mod reuse;
