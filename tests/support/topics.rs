//! Topics whose listeners do nothing.

/// Makes a payload and a listener for each of some topics, and a function that adds all the listeners. It needs `dq::prelude` and the
/// derives of `serde`.
#[macro_export]
macro_rules! topics {
    ($all:ident: $($listener:ident $payload:ident $topic:literal),+ $(,)?) => {
        $(
            #[derive(Debug, Serialize, Deserialize, DelayJob)]
            #[job(topic = $topic)]
            pub struct $payload;

            #[delay_listener(register = false)]
            async fn $listener(_job: Job<$payload>) -> Result<(), JobError> {
                Ok(())
            }
        )+

        pub const TOPICS: &[&str] = &[$($topic),+];

        /// Adds a listener for each of the topics.
        pub fn $all(factory: ContextFactory) -> ContextFactory {
            factory$(.listener::<$listener>())+
        }
    };
}
