// Special functions against values to 20 digits.
#include <cmath>

#include "tests/kernels/host_call.h"

namespace tenon::kernels {
namespace {

struct OfOne {
  const char* name;
  double x, want, tolerance;  // of 1 + |want| where it is above 1e-2, else of the value
};
const OfOne of_one[] = {
    {"special_airy_ai", -40.0, -0.045933923437957249632, 2e-14},
    {"special_airy_ai", -11.5, 0.3054229700435926564, 2e-14},
    {"special_airy_ai", -10.9, -0.10915179222515849956, 2e-14},
    {"special_airy_ai", -9.0, -0.022133721547341403674, 2e-14},
    {"special_airy_ai", -7.3, 0.33577037051514727697, 2e-14},
    {"special_airy_ai", -5.1, 0.30952599628731769164, 2e-14},
    {"special_airy_ai", -3.0, -0.37881429367765807435, 2e-14},
    {"special_airy_ai", -1.7, 0.38860703739632875711, 2e-14},
    {"special_airy_ai", -0.4, 0.45422561388866740339, 2e-14},
    {"special_airy_ai", 0.0, 0.35502805388781723926, 2e-14},
    {"special_airy_ai", 0.9, 0.15188680364054435726, 2e-14},
    {"special_airy_ai", 1.1, 0.12004942735539765503, 2e-14},
    {"special_airy_ai", 4.0, 0.00095156385120480187362, 2e-14},
    {"special_airy_ai", 12.0, 1.393184688875360839e-13, 2e-14},
    {"special_airy_ai", 60.0, 2.7831487094969355371e-136, 2e-14},
};
struct OfTwo {
  const char* name;
  double x, y, want, tolerance;
};
const OfTwo of_two[] = {
    {"special_zeta", 1.5, 0.3, 8.2377616714597234206, 1e-13},
    {"special_zeta", 2.0, 1.0, 1.6449340668482264365, 1e-13},
    {"special_zeta", 3.0, 7.5, 0.010152626268322332032, 1e-13},
    {"special_zeta", 9.0, 0.1, 1000000000.4253975435, 1e-13},
    {"special_zeta", 2.0, -1.5, 9.3792466449891237539, 1e-13},
    {"special_igamma", 0.5, 0.2, 0.47291074313446192633, 1e-12},
    {"special_igamma", 2.0, 1.0, 0.26424111765711535681, 1e-12},
    {"special_igamma", 3.5, 9.0, 0.98802999764597044869, 1e-12},
    {"special_igamma", 30.0, 25.0, 0.1821039159774551098, 1e-12},
    {"special_igamma", 5.0, 0.01, 8.2641856418064986172e-13, 1e-12},
    {"special_igammac", 0.5, 0.2, 0.52708925686553807367, 1e-12},
    {"special_igammac", 2.0, 1.0, 0.73575888234288464319, 1e-12},
    {"special_igammac", 3.5, 9.0, 0.011970002354029551305, 1e-12},
    {"special_igammac", 30.0, 45.0, 0.0073371992977965036286, 1e-12},
    {"special_legendre", 0.3, 5.0, 0.34538625000000000187, 1e-13},
    {"special_legendre", -0.9, 12.0, 0.04074871427242068403, 1e-13},
    {"special_hermite_h", 0.3, 5.0, 31.757759999999999133, 1e-13},
    {"special_hermite_h", -0.9, 6.0, 182.28422400000000273, 1e-13},
    {"special_laguerre", 0.3, 5.0, -0.093332749999999973046, 1e-13},
    {"special_laguerre", 4.0, 6.0, -1.8444444444444444444, 1e-13},
    {"special_chebyshev_t", 0.3, 5.0, 0.99887999999999999725, 1e-13},
    {"special_chebyshev_t", -0.9, 12.0, 0.64416625868799953244, 1e-13},
    {"special_chebyshev_u", 0.3, 5.0, 1.0137600000000000149, 1e-13},
    {"special_chebyshev_u", -0.9, 12.0, -0.93512466022400148567, 1e-13},
};

double allowed(double want, double tolerance) {
  double size = std::fabs(want);
  return tolerance * (size > 1e-2 ? 1 + size : size);
}

TEST(Special, functions_of_one_number_have_their_values) {
  for (tenon_target target : targets())
    for (const OfOne& c : of_one) {
      double x = c.x, got = 0;
      HostRun run(c.name, target, {tensor_of(&x, TENON_F64, {1})}, {tensor_of(&got, TENON_F64, {1})});
      EXPECT_EQ(run.status, 0);
      EXPECT_NEAR(got, c.want, allowed(c.want, c.tolerance)) << c.name << " of " << c.x;
    }
}

TEST(Special, functions_of_two_numbers_have_their_values) {
  for (tenon_target target : targets())
    for (const OfTwo& c : of_two) {
      double x = c.x, y = c.y, got = 0;
      HostRun run(c.name, target, {tensor_of(&x, TENON_F64, {1}), tensor_of(&y, TENON_F64, {1})},
                  {tensor_of(&got, TENON_F64, {1})});
      EXPECT_EQ(run.status, 0);
      EXPECT_NEAR(got, c.want, allowed(c.want, c.tolerance)) << c.name << " of " << c.x << ", " << c.y;
    }
}

TEST(Special, targets_give_the_same_bits) {
  std::vector<double> x;
  for (int i = 0; i < 400; ++i) x.push_back(0.001 * i * i);
  for (const char* name : {"special_airy_ai"}) {
    std::vector<std::vector<double>> results;
    for (tenon_target target : targets()) {
      std::vector<double> out(x.size());
      HostRun run(name, target, {tensor_of(x.data(), TENON_F64, {400})}, {tensor_of(out.data(), TENON_F64, {400})}, {},
                  400);
      results.push_back(out);
    }
    for (const auto& r : results)
      EXPECT_EQ(std::memcmp(r.data(), results[0].data(), r.size() * sizeof(double)), 0) << name;
  }
}

}  // namespace
}  // namespace tenon::kernels
