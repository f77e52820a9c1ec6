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
    (@run ($open:ident $wanted:ident) $($group:ident: $($behaviour:ident)+;)+) => { $($(
        if $wanted(::core::stringify!($behaviour)) {
            // Boxed, because all behaviours in one future are more than a stack holds.
            ::std::boxed::Box::pin(async {
                let topic = $crate::conformance::Topic::open($open().await, ::core::stringify!($behaviour)).await;
                $crate::conformance::$group::$behaviour(&topic).await;
                topic.close().await;
            })
            .await;
        }
    )+)+ };
    (@names () $($group:ident: $($behaviour:ident)+;)+) => { &[$($(::core::stringify!($behaviour),)+)+] };
    ($open:expr) => { $crate::store_behaviours! { tests ($open) } };
}
