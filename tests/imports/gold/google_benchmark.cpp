// What google_benchmark.json was made of, with google-benchmark 1.7.1 of Debian (libbenchmark-dev):
//   g++ -O1 google_benchmark.cpp -lbenchmark -lpthread -o sums
//   ./sums --benchmark_min_time=0.001 --benchmark_format=json > google_benchmark.json
//   ./sums --benchmark_min_time=0.001 --benchmark_report_aggregates_only=true --benchmark_format=json > google_aggregates.json
#include <benchmark/benchmark.h>
#include <numeric>
#include <vector>

static void sum(benchmark::State &state) {
    std::vector<int> numbers(state.range(0), 1);
    for (auto _ : state)
        benchmark::DoNotOptimize(std::accumulate(numbers.begin(), numbers.end(), 0));
    state.SetComplexityN(state.range(0));
    state.counters["bytes"] = 4.0 * state.range(0);
}
BENCHMARK(sum)->RangeMultiplier(4)->Range(256, 65536)->Complexity()->Repetitions(3);

static void fill(benchmark::State &state) {
    for (auto _ : state)
        for (int i = 0; i < state.range(0) * state.range(1); i++)
            benchmark::DoNotOptimize(i);
}
BENCHMARK(fill)->Args({1, 64})->Args({3, 64})->ArgNames({"rows", "columns"})->Unit(benchmark::kMicrosecond);

static void broken(benchmark::State &state) {
    state.SkipWithError("no input");
    for (auto _ : state) {
    }
}
BENCHMARK(broken)->Arg(3);

template <class T> void create(benchmark::State &state) {
    for (auto _ : state)
        benchmark::DoNotOptimize(T());
}
BENCHMARK_TEMPLATE(create, std::vector<int>)->Arg(8)->UseRealTime()->Threads(2)->MinTime(0.01);
BENCHMARK_MAIN();
