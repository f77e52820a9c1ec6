//! The macro that makes tests of the list of the behaviours.

/// Makes a test of every behaviour of [`conformance`](crate::conformance) for one store.
///
/// The argument is an expression of a future of a [`StoreFixture`](crate::conformance::StoreFixture); each test evaluates
/// it once.
#[macro_export]
macro_rules! store_conformance {
    (@tests ($open:expr) $($group:ident: $($behaviour:ident)+;)+) => { $($(
        #[tokio::test]
        async fn $behaviour() {
            let topic = $crate::conformance::Topic::open($open.await, ::core::stringify!($behaviour)).await;
            $crate::conformance::$group::$behaviour(&topic).await;
            topic.close().await;
        }
    )+)+ };
    (@names () $($group:ident: $($behaviour:ident)+;)+) => { &[$($(::core::stringify!($behaviour),)+)+] };
    ($open:expr) => { $crate::store_behaviours! { tests ($open) } };
}
