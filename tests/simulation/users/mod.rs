//! `dq_testing::simulate`: it finds what is wrong with users' listeners, and reports nothing about right ones.

mod decisions;
mod fences;
mod payments;
mod same;
mod shrinking;
mod spawning;
