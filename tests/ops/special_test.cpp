// Special functions that are scalar formulas, against values to 20 digits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tenon/interp/eager.h"
#include "tenon/rules/call.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

struct Recorded {
  const char* op;
  double x, want, tolerance;  // of 1 + |want| where it is above 1e-2, else of the value
};
const Recorded recorded[] = {
    {"i0", 1e-06, 1.00000000000025, 2e-15},
    {"i0", 0.01, 1.000025000156250434, 2e-15},
    {"i0", 0.7, 1.1263030183068091815, 2e-15},
    {"i0", 1.5, 1.6467231897728908449, 2e-15},
    {"i0", 3.9, 10.368957916732943194, 2e-15},
    {"i0", 9.0, 1093.5883545113746958, 2e-15},
    {"i0", 17.3, 3150766.5947674073976, 2e-15},
    {"i0", 24.9, 5235629675.8044221842, 2e-15},
    {"i0", 25.1, 6369018573.8035025426, 2e-15},
    {"i0", 31.0, 2089962966491.9037954, 2e-15},
    {"i0", 120.5, 7.8226519965460261933e+50, 2e-15},
    {"i0", -2.5, 3.2898391440501230357, 2e-15},
    {"i0", 600.0, 6.1463054039368448035e+258, 2e-15},
    {"special_i1", 1e-06, 5.0000000000006247737e-7, 2e-15},
    {"special_i1", 0.01, 0.0050000625002604173133, 2e-15},
    {"special_i1", 0.7, 0.37187967777700862832, 2e-15},
    {"special_i1", 1.5, 0.98166642857790758565, 2e-15},
    {"special_i1", 3.9, 8.9127874513627249714, 2e-15},
    {"special_i1", 9.0, 1030.9147225169564444, 2e-15},
    {"special_i1", 17.3, 3058304.1300396612127, 2e-15},
    {"special_i1", 24.9, 5129395695.9257420694, 2e-15},
    {"special_i1", 25.1, 6240828249.8739802719, 2e-15},
    {"special_i1", 31.0, 2055972795294.5647312, 2e-15},
    {"special_i1", 120.5, 7.7901249507889136365e+50, 2e-15},
    {"special_i1", -2.5, -2.5167162452886984415, 2e-15},
    {"special_i1", 600.0, 6.1411813450668919369e+258, 2e-15},
    {"special_i0e", 1e-06, 0.99999900000074999958, 2e-15},
    {"special_i0e", 0.01, 0.9900745851497074988, 2e-15},
    {"special_i0e", 0.7, 0.55930552650706833434, 2e-15},
    {"special_i0e", 1.5, 0.36743360905415833924, 2e-15},
    {"special_i0e", 3.9, 0.20988752793578060871, 2e-15},
    {"special_i0e", 9.0, 0.13495952458172301289, 2e-15},
    {"special_i0e", 17.3, 0.096632161790235565157, 2e-15},
    {"special_i0e", 24.9, 0.080359332611532213624, 2e-15},
    {"special_i0e", 25.1, 0.080035197254296236447, 2e-15},
    {"special_i0e", 31.0, 0.071946496696983832763, 2e-15},
    {"special_i0e", 120.5, 0.036380523244685661114, 2e-15},
    {"special_i0e", -2.5, 0.27004644161220273956, 2e-15},
    {"special_i1e", 1e-06, 4.9999950000031247723e-7, 2e-15},
    {"special_i1e", 0.01, 0.0049503110471182757076, 2e-15},
    {"special_i1e", 0.7, 0.18466998276274731965, 2e-15},
    {"special_i1e", 1.5, 0.21903938742092567212, 2e-15},
    {"special_i1e", 3.9, 0.18041185432576088295, 2e-15},
    {"special_i1e", 9.0, 0.1272249839358912052, 2e-15},
    {"special_i1e", 17.3, 0.093796392277529055841, 2e-15},
    {"special_i1e", 24.9, 0.0787287948821031292, 2e-15},
    {"special_i1e", 25.1, 0.078424315178368413882, 2e-15},
    {"special_i1e", 31.0, 0.070776392834385680169, 2e-15},
    {"special_i1e", 120.5, 0.036229250895516852606, 2e-15},
    {"special_i1e", -2.5, -0.20658464953126655421, 2e-15},
    {"special_modified_bessel_k0", 1e-06, 13.931442073626419459, 4e-15},
    {"special_modified_bessel_k0", 0.01, 4.7212447301610949443, 4e-15},
    {"special_modified_bessel_k0", 0.7, 0.66051985991510159538, 4e-15},
    {"special_modified_bessel_k0", 1.5, 0.21380556264752573672, 4e-15},
    {"special_modified_bessel_k0", 3.9, 0.012482322757249776928, 4e-15},
    {"special_modified_bessel_k0", 9.0, 0.00005088131295645924757, 4e-15},
    {"special_modified_bessel_k0", 17.3, 9.1767744393061193177e-9, 4e-15},
    {"special_modified_bessel_k0", 24.9, 3.8360965209894920567e-12, 4e-15},
    {"special_modified_bessel_k0", 25.1, 3.1283127143211170991e-12, 4e-15},
    {"special_modified_bessel_k0", 31.0, 7.7183826555276153838e-15, 4e-15},
    {"special_modified_bessel_k0", 120.5, 5.3043562719609067824e-54, 4e-15},
    {"special_modified_bessel_k1", 1e-06, 999999.99999278432422, 4e-15},
    {"special_modified_bessel_k1", 0.01, 99.973894118296245561, 4e-15},
    {"special_modified_bessel_k1", 0.7, 1.0502835353129180474, 4e-15},
    {"special_modified_bessel_k1", 1.5, 0.27738780045684381609, 4e-15},
    {"special_modified_bessel_k1", 3.9, 0.013999282082274829471, 4e-15},
    {"special_modified_bessel_k1", 9.0, 0.000053637016379451945249, 4e-15},
    {"special_modified_bessel_k1", 17.3, 9.4383700428039726564e-9, 4e-15},
    {"special_modified_bessel_k1", 24.9, 3.9123824362567633162e-12, 4e-15},
    {"special_modified_bessel_k1", 25.1, 3.1900323186042660338e-12, 4e-15},
    {"special_modified_bessel_k1", 31.0, 7.8418996008340633766e-15, 4e-15},
    {"special_modified_bessel_k1", 120.5, 5.3263207597040703148e-54, 4e-15},
    {"special_scaled_modified_bessel_k0", 1e-06, 13.931456005075458808, 4e-15},
    {"special_scaled_modified_bessel_k0", 0.01, 4.7686940285444618845, 4e-15},
    {"special_scaled_modified_bessel_k0", 0.7, 1.330123656242055655, 4e-15},
    {"special_scaled_modified_bessel_k0", 1.5, 0.95821005329489649642, 4e-15},
    {"special_scaled_modified_bessel_k0", 3.9, 0.61665731473383312115, 4e-15},
    {"special_scaled_modified_bessel_k0", 9.0, 0.41229554923141807358, 4e-15},
    {"special_scaled_modified_bessel_k0", 17.3, 0.29921584921018293457, 4e-15},
    {"special_scaled_modified_bessel_k0", 24.9, 0.24993215015402473826, 4e-15},
    {"special_scaled_modified_bessel_k0", 25.1, 0.24894399546328753308, 4e-15},
    {"special_scaled_modified_bessel_k0", 31.0, 0.22421013741927490315, 4e-15},
    {"special_scaled_modified_bessel_k0", 120.5, 0.11405589991701876025, 4e-15},
    {"special_scaled_modified_bessel_k1", 1e-06, 1000000.9999932843172, 4e-15},
    {"special_scaled_modified_bessel_k1", 0.01, 100.97864845824004908, 4e-15},
    {"special_scaled_modified_bessel_k1", 0.7, 2.1150113128480524605, 4e-15},
    {"special_scaled_modified_bessel_k1", 1.5, 1.2431658735525529948, 4e-15},
    {"special_scaled_modified_bessel_k1", 3.9, 0.69159882058354267784, 4e-15},
    {"special_scaled_modified_bessel_k1", 9.0, 0.43462524534743467207, 4e-15},
    {"special_scaled_modified_bessel_k1", 17.3, 0.30774537678743250271, 4e-15},
    {"special_scaled_modified_bessel_k1", 24.9, 0.25490238558081708606, 4e-15},
    {"special_scaled_modified_bessel_k1", 25.1, 0.25385550089505651378, 4e-15},
    {"special_scaled_modified_bessel_k1", 31.0, 0.22779816259459249946, 4e-15},
    {"special_scaled_modified_bessel_k1", 120.5, 0.11452818708766100182, 4e-15},
    {"special_bessel_j0", 1e-06, 0.99999999999975, 1e-14},
    {"special_bessel_j0", 0.01, 0.99997500015624956597, 1e-14},
    {"special_bessel_j0", 0.7, 0.88120088860740529545, 1e-14},
    {"special_bessel_j0", 1.5, 0.51182767173591812875, 1e-14},
    {"special_bessel_j0", 3.9, -0.40182601488763990745, 1e-14},
    {"special_bessel_j0", 9.0, -0.090333611182876134336, 1e-14},
    {"special_bessel_j0", 17.3, -0.13370064707576419445, 1e-14},
    {"special_bessel_j0", 24.9, 0.083245968353015490053, 1e-14},
    {"special_bessel_j0", 25.1, 0.10827567149994945198, 1e-14},
    {"special_bessel_j0", 31.0, 0.0512081453045422488, 1e-14},
    {"special_bessel_j0", 120.5, 0.068691061120123796947, 1e-14},
    {"special_bessel_j0", -4.0, -0.39714980986384737229, 1e-14},
    {"special_bessel_j0", 10000.0, -0.0070961603533888014773, 1e-14},
    {"special_bessel_j1", 1e-06, 4.9999999999993747737e-7, 1e-14},
    {"special_bessel_j1", 0.01, 0.0049999375002604162282, 1e-14},
    {"special_bessel_j1", 0.7, 0.32899574154005892959, 1e-14},
    {"special_bessel_j1", 1.5, 0.55793650791009964199, 1e-14},
    {"special_bessel_j1", 3.9, -0.027244039620779891184, 1e-14},
    {"special_bessel_j1", 9.0, 0.24531178657332527232, 1e-14},
    {"special_bessel_j1", 17.3, -0.14142333549201398608, 1e-14},
    {"special_bessel_j1", 24.9, -0.13485569953140886933, 1e-14},
    {"special_bessel_j1", 25.1, -0.11463478413442256746, 1e-14},
    {"special_bessel_j1", 31.0, -0.13302431666631419837, 1e-14},
    {"special_bessel_j1", 120.5, 0.024047469720700391853, 1e-14},
    {"special_bessel_j1", -4.0, 0.066043328023549136143, 1e-14},
    {"special_bessel_j1", 10000.0, 0.0036474507555295803441, 1e-14},
    {"special_bessel_y0", 1e-06, -8.8690314816594437317, 1e-14},
    {"special_bessel_y0", 0.01, -3.0054556370836459445, 1e-14},
    {"special_bessel_y0", 0.7, -0.19066492933739511643, 1e-14},
    {"special_bessel_y0", 1.5, 0.38244892379775884396, 1e-14},
    {"special_bessel_y0", 3.9, 0.023375908198718963825, 1e-14},
    {"special_bessel_y0", 9.0, 0.24993669828502467602, 1e-14},
    {"special_bessel_y0", 17.3, -0.13750521344352496428, 1e-14},
    {"special_bessel_y0", 24.9, -0.13649918399676523538, 1e-14},
    {"special_bessel_y0", 25.1, -0.1167677076380369472, 1e-14},
    {"special_bessel_y0", 31.0, -0.13383266050364432524, 1e-14},
    {"special_bessel_y0", 120.5, 0.023762244937845514623, 1e-14},
    {"special_bessel_y0", 10000.0, 0.0036478055589866058867, 1e-14},
    {"special_bessel_y1", 1e-06, -636619.77237217504257, 1e-14},
    {"special_bessel_y1", 0.01, -63.678596282060655049, 1e-14},
    {"special_bessel_y1", 0.7, -1.1032498719076334312, 1e-14},
    {"special_bessel_y1", 1.5, -0.41230862697391129595, 1e-14},
    {"special_bessel_y1", 3.9, 0.4078200195265379037, 1e-14},
    {"special_bessel_y1", 9.0, 0.10431457519671588765, 1e-14},
    {"special_bessel_y1", 17.3, 0.12978534673908389274, 1e-14},
    {"special_bessel_y1", 24.9, -0.086002557595554252479, 1e-14},
    {"special_bessel_y1", 25.1, -0.11062223322783098811, 1e-14},
    {"special_bessel_y1", 31.0, -0.053372826957321594076, 1e-14},
    {"special_bessel_y1", 120.5, -0.068593055565510553188, 1e-14},
    {"special_bessel_y1", 10000.0, 0.007096342752536495135, 1e-14},
    {"special_erfcx", -3.0, 16205.988853999586625, 1e-13},
    {"special_erfcx", -0.5, 1.9523604891825570933, 1e-13},
    {"special_erfcx", 0.0, 1.0, 1e-13},
    {"special_erfcx", 0.4, 0.67078778529476151019, 1e-13},
    {"special_erfcx", 2.0, 0.25539567631050574387, 1e-13},
    {"special_erfcx", 6.0, 0.092776567800538354389, 1e-13},
    {"special_erfcx", 15.0, 0.037529606388505765746, 1e-13},
    {"special_erfcx", 25.0, 0.022549572432641358944, 1e-13},
    {"special_ndtri", 1e-09, -5.9978070150076868614, 1e-12},
    {"special_ndtri", 0.001, -3.0902323061678135354, 1e-12},
    {"special_ndtri", 0.2, -0.84162123357291416552, 1e-12},
    {"special_ndtri", 0.3, -0.52440051270804081597, 1e-12},
    {"special_ndtri", 0.6, 0.25334710313579974132, 1e-12},
    {"special_ndtri", 0.9, 1.2815515655446005935, 1e-12},
    {"special_ndtri", 0.9999, 3.7190164854557083867, 1e-12},
    {"special_log_ndtr", -30.0, -454.32124395634319711, 1e-13},
    {"special_log_ndtr", -5.0, -15.064998393988725736, 1e-13},
    {"special_log_ndtr", -1.5, -2.705944400823889807, 1e-13},
    {"special_log_ndtr", 0.0, -0.69314718055994530942, 1e-13},
    {"special_log_ndtr", 1.0, -0.17275377902344988953, 1e-13},
    {"special_log_ndtr", 4.0, -0.00003167174337748926386, 1e-13},
};

double of(const char* name, double x) {
  interp::install();
  Tensor argument(make_meta(DType::f64, {}), std::make_shared<Storage>(sizeof(double)));
  *argument.mutable_data<double>() = x;
  return scalar_value(call_op(*registry().find(text("aten::", name)), {argument})[0]);
}

TEST(Special, FormulasHaveTheirValues) {
  for (const Recorded& c : recorded) {
    double size = std::fabs(c.want), allowed = c.tolerance * (size > 1e-2 ? 1 + size : size);
    EXPECT_NEAR(of(c.op, c.x), c.want, allowed) << c.op << " of " << c.x;
  }
}

TEST(Special, FormulasHaveTheirLimits) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* name : {"i0", "special_i0e", "special_i1", "special_i1e", "special_bessel_j0", "special_bessel_j1",
                           "special_bessel_y0", "special_bessel_y1", "special_modified_bessel_k0",
                           "special_modified_bessel_k1", "special_erfcx", "special_ndtri", "special_log_ndtr"})
    EXPECT_TRUE(std::isnan(of(name, nan))) << name;
  for (const char* name : {"i0", "special_i1"}) EXPECT_EQ(of(name, inf), inf) << name;
  EXPECT_EQ(of("special_i1", -inf), -inf);
  for (const char* name : {"special_i0e", "special_i1e", "special_bessel_j0", "special_bessel_y1",
                           "special_modified_bessel_k0", "special_erfcx", "special_spherical_bessel_j0"})
    EXPECT_EQ(of(name, inf), 0) << name;
  for (const char* name : {"special_bessel_y0", "special_bessel_y1"}) EXPECT_EQ(of(name, 0), -inf) << name;
  for (const char* name : {"special_modified_bessel_k0", "special_modified_bessel_k1"}) EXPECT_EQ(of(name, 0), inf);
  for (const char* name : {"special_bessel_y0", "special_modified_bessel_k1"}) EXPECT_TRUE(std::isnan(of(name, -1)));
  EXPECT_EQ(of("special_ndtri", 0), -inf);
  EXPECT_EQ(of("special_ndtri", 1), inf);
  EXPECT_TRUE(std::isnan(of("special_ndtri", 1.5)));
  EXPECT_EQ(of("special_spherical_bessel_j0", 0), 1);
  EXPECT_EQ(of("special_log_ndtr", inf), 0);
}

TEST(Special, FormulasAreStages) {
  Tensor x(make_meta(DType::f32, {3}), std::make_shared<Storage>(12));
  for (const char* name : {"i0", "special_i1e", "special_ndtri", "special_bessel_j1", "special_log_ndtr"}) {
    CallArg args[] = {x};
    EXPECT_EQ(implementation_of(*registry().find(text("aten::", name)), args), Implementation::stages) << name;
  }
}

}  // namespace
}  // namespace tenon
