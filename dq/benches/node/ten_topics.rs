//! Ten topics, whose listeners all have these settings and this body.

macro_rules! ten_topics {
    ($settings:tt $body:tt) => {
        ten_topics! {
            $settings $body
            one One "one", two Two "two", three Three "three", four Four "four", five Five "five",
            six Six "six", seven Seven "seven", eight Eight "eight", nine Nine "nine", ten Ten "ten"
        }
    };
    ($settings:tt $body:tt $($listener:ident $payload:ident $topic:literal),+) => {
        #[allow(dead_code, reason = "topics that stay empty need no names")]
        const TOPICS: &[&str] = &[$($topic),+];

        $(
            #[derive(Debug, Serialize, Deserialize, DelayJob)]
            #[job(topic = $topic)]
            struct $payload;

            #[delay_listener $settings]
            async fn $listener(_job: Job<$payload>) -> Result<(), JobError> $body
        )+

        fn ten_topics(factory: ContextFactory) -> ContextFactory {
            factory$(.listener::<$listener>())+
        }
    };
}
