// Made by scripts/make_property_tables.py: what Unicode 16 says of characters. Numbers are in base 32, a set
// is a list of gaps and lengths.
// clang-format off
#include "tokenizer/code_set.hpp"

namespace fovea::tables {

const NamedRuns kProperties[] = {
    {" cc cntrl control ",
     R"(0Q0ROQ1)"},
    {" cf format ",
     R"(U=1QZB6F1V01QA1\02R@1Si;1QoL5J5QA51:Qgd?1WI3TV11?1Xk2@QRS04UV?8h[d61NS0)"},
    {" cn unassigned ",
     R"(kH2647111D1\=1Q62QB231QG8K46;X>1QL2S5>QK2QA2?1L211;5O125W=18222F1711342922248142152I2316422F171212)"
     R"(12211542233174117A:319131F1712152:131321?42<771318222F1712152922237342152B:216331432111232333<4533)"
     R"(142161>E5=131G1@291314721321242:7F131G1:152913147262142:13<=131QC13164@2J131B3H191127314611186:23<)"
     R"(QJ4MQ5211151H111G2511171:24Q0R81Q44Q71Q41?1=Q5V611512[I142711142Q9142Q1142711142?1QI142R32Q03J6RF2)"
     R"(62dM3RI7F9H9D<=1312<RN2:6:6J6RI7Q;5R6:O1<4<413Q:25;Q<4J6;3QN2R11M2;6:6>2OQAR=1U68QL3?3QN5Q;2;8Q;5`)"
     R"(F262Q626281111111O2QE1?1>261C23191S51<2K1=3Q1?Q1?T<4dJF;EQhD2Q01ZM5Q=11512QH72>H97171717171717171S)"
     R"(NQ2J1RI<VFJR@1RF2S75Q;1RN1RF9Q@1lc=3QG9ZLDUH8V>221118EQK3:6QH8R68<6SD;N3R>1;4Q11QG9>2:2S7HL:626269)"
     R"(7171QL4SN2:6Zm4<G4QA4Xc>2S:Q67<55J151112121SM@]M2QF71Q0Q:6QC1C14451T7211UN362626233717:52<1J1C121?)"
     R"(2>Q2SK534Q=3RH1=31Q?Q>T2M3QA?L4Q49N5Q;5N1Q54>Q:TN2:6Q44Q44Q88QD;<1?17121;1?17123QD<YG9F:8H61Q:19R5)"
     R"(6211Q<12312G1R889Q@C125Q13K51R0QH4D2QB1258131M234:797R0Q0Q74<9QF3M2K5J74<7R@R9QGQC=QC7Q>8:6Q63M82V)"
     R"(@O1Q:1322@3QGQ<8Q:FJQ6LDG9R>4Q49R4:12I7:6QE1B8Q79S01D;B1Q?QN711141?1;6QK5:6418222F1712151:22232161)"
     R"(572735;:11211Q61:1121141:1282MRL15NR88:U6QF2Q6Q2R5;:6=CQJ6:6DLK2?4GUIQLS4RC<82128121N122<9:R682Q>2)"
     R"(;KR88RC=R97:UFQ2>:691Q=1>:M3Q02F1>R97121Q<3112198:66121Q512167:YFI7A1Q93MRE1?QB=lKS6S?15;V4Rb<S3=Q)"
     R"(RF:SlK5b7VeIQJQf6aI7O1:4RA1:6N26:R6::171E5C]@QJV6RKS5R;4QI7AR05;2>UoH8QVFQ9:Xg7417121Y3?1M321>48\<)"
     R"(RX4S;5=397:28SjLWJ6]DR<Q>2G9SDQLWF:Q72V2ER6SJD<D<RG9IT7RE1R7122122241<11171R11428171L141511371ZD2Y)"
     R"(42eN?51?QR@O66VE71A2712155QNQ11S@Q=3>2:42Z0OAQJ51^@Q:VFQ;41_0714121?1V52@Q9R<4:42hAR4R<QMV241K1211)"
     R"(211:141111614111111312112111111111121124171414111:1A53151AQD2X>Q<4S4<?2?1?1Q5:U>QHM=Q<4972>6TJnH4A)"
     R"(3=3SG4RO6<41?<4QH8:6Q88N2<42QNZD<>2=3:5QH7?2;697TC1S6QP6QYg0Q0TQJ6VN2Ud2>WYA?c>R]2`NQ_2Tj;5TS0egRA)"
     R"(1NS0T0W@Qo`@QooN2QooN2)"},
    {" co privateuse ",
     R"(QhP0VX0lQh0QooN2QooN)"},
    {" cs surrogate ",
     R"(QfP0RP0)"},
    {" ll lowercaseletter ",
     R"(S1JQJ1Q9H18111111111111111111111111111111111111111111111111111111121111111111111112111111111111111)"
     R"(11111111111111111111111111111112111132111213241213321211111211211213111222361212111111111111111121)"
     R"(111111111111111122111311111111111111111111111111111111111111111111111111111111117212211411111111R5)"
     R"(1KV11113133B1KQ31233111111111111111111111115112122QCQ@11111111111111111111111111111111119111111111)"
     R"(11111111111111111111111111111111111111111111211111111111121111111111111111111111111111111111111111)"
     R"(11111111111111111111111111111111111111111111111111111111Q@Q9Rj7Q;23gH6RT2911SEQ<QO=1Q2S61111111111)"
     R"(11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111)"
     R"(11111111111111111111111111111111111111119111111111111111111111111111111111111111111111111111111111)"
     R"(1111111111111111111111111111111111111111986:88886:8888>2888888512613312842288:312XB13231K141412284)"
     R"(41QE1Re;Q@1132111111411216511111111111111111111111111111111111111111111111111111111111111111111111)"
     R"(1111111111111111111111111112711141<Q61151nXC111111111111111111111111111111111111111111111C11111111)"
     R"(1111111111111111111T711111111111131111111111111111111111111111111111111111111111111111111111111118)"
     R"(111121111111114111211311111111111111111111515111111111111111411121311111111111J131iEQ;597R@cj07<5Q)"
     R"(Q9JQV=Q8T8Q4TK;1?1712Qh3QCSMFRiJQ0e\0Q0i\JJJ71BJJJ411171;JJJJJJJJJJJJJJJJJLLI16JI16JI16JI16JI1611Q)"
     R"(iD:1D66R_GQ2)"},
    {" lm modifierletter ",
     R"(e@B4<>57111T5151^N1W61U42X=241O19131U01U71QVD1SO1aE1QfJ1S;1c31^@6U>QO=1Q2Q5eA1=1@=RnO2WA1UO1^E1Q;5)"
     R"(51S12RM3khF1QW26X>1SB1L2SI9R@1G1S9332^E1F1T91S<1E2S7491eP61Q=2Qo061Q:19Q\C1Q01g^@4_L3Q82a6=R0211`P)"
     R"(<41712\QAQNV97m=1QRO1)"},
    {" lo otherletter ",
     R"(U:1?1X0144V@1iKK44Q=Q01:Q321S311H2:321@11NMRI;1HQ1EFQ:I7;5H16AQ9QKQF31B17:@?48222F17113431@1=213>2)"
     R"(:186422F17121212O411C3@9131F17121531B1?2G1;8222F17121531N213?1A116331432111232333<F1QD8131G1@31J32)"
     R"(122N148131G1:1531O212?2A9131Q921@15383H65B3H191127QJQ@12<6QK211151H111:129125G4Q01QO81Q4K5SCQ;D1@6)"
     R"(443132734=<1SAZ9142711142Q9142Q1142711142?1QI142R3Q5@SAc<2A1J5R;687B=C>B>=13?QDQ81R3Q31QE752Q2115R)"
     R"(6:OQAN25;Q<4JQFG9QEU@Q?A8QFN=2:Q<JQ4Q93:NSA4161231QQJ4RoGQHHG9717171717171717a71QE14RF811RJ415Q;1R)"
     R"(NAQ0Q@@`0V^0R0d`E1QSGR3Q88X<4@:2R21QAR6U91S713713141GMQD>QBQN63112;L:GIM7Q?Q=529:51Q9G318D@16313QB)"
     R"(1132252111H23;71>626269717TAQ3MZm4<G4QAXX4[>2S:R311:1=151112121S<Q1[;BR02QFQ8<SD51T7S9:1Q=2O362626)"
     R"(23Q3<1J1C121?2>Q2SK\5M3QAQ?Q0=D186Q6:N2Q448T0R>S2Q88QDRLQD<YG9F:8TH6211Q<12312G:G9OR1C12:F:JR6QH62)"
     R"(R01?4131MQ:M3MQ381LKQF:F:C=BS>R9UGQ4Q6411Y@Q:62@3QKM:18FQ:BQ>EKG<QEQI221=Q=Q0IJQ4M1218Q331<Q@>4E11)"
     R"(1Q3B1IC2QO711141?1:7Q?Q68222F17121531B1<5N:11211Q611I111Q<QEB4D3NQ@D211UHQ?Q94Q4Q@D1QKQ;=1R7KQ57UI)"
     R"(Q<VC82128121H?111RN82Q7@111L1:Q871E1;Q>C1BR9V7Q1O91Q5A1QANS@7121Q6E1I6121Q0>1Z7C?11=1Q2SL1R?lJW6V4)"
     R"(Rb<S1?QQ@A6ISlK5b7VeINQg2aI7OAR?ANBQ@QCE5C]CQ8\ER;51U?UoH8QVFQ9:XgGY3?1M321>48\<RX4S;5=397:Xc@1_EQ)"
     R"(=Q11Z1NBQ<_4KW5N21_?714121?1V5QYK41K1211211:141111614111111312112111111111121124171414111:1A53151A)"
     R"(TZ4QYg0Q0TQJ6VN2Ud2>WYA?c>R]2`NQ_2Tj;5TS0)"},
    {" lt titlecaseletter ",
     R"(^512121Q61W\E88888<1?1Q?1)"},
    {" lu uppercaseletter ",
     R"(R1JS5G17Q11111111111111111111111111111111111111111111111111111111211111111111111121111111111111111)"
     R"(11111111111111111111111111111121111321112132412133212111112112112131112317121212111111111111111211)"
     R"(11111111111111121211311111111111111111111111111111111111111111111111111111111117212211411111111Y11)"
     R"(113181611311121A19Q31233111111111111111111111115121122QCQ@1111111111111111111111111111111119111111)"
     R"(11111111111111111111111111111111111111111111111121111111111112111111111111111111111111111111111111)"
     R"(111111111111111111111111111111111111111111111111111111111112Q6Rj9Q61151fBRFRTC16Q;23Z0111111111111)"
     R"(11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111)"
     R"(11111111111111111111111111111111111111191111111111111111111111111111111111111111111111111111111111)"
     R"(1111111111111111111111111111111111111119886:88886;111111188R84<4<4<5;4X6141332321356111111424:251Q)"
     R"(M1RcLQ@Q@11321111114112183111111111111111111111111111111111111111111111111111111111111111111111111)"
     R"(11111111111111111111111111811141nZ=111111111111111111111111111111111111111111111C11111111111111111)"
     R"(1111111111T7111111111111131111111111111111111111111111111111111111111111111111111111111:1111211111)"
     R"(11141112111311111111111111111111515111111111111111411123151111111H1ei;JQV5Q8T8Q4TL;1?1712Qg:QCTMFR)"
     R"(iJQ0e\0Q0i]0JJJJJJ11221222418JJJ2142817K214151137KJJJJJJJJJJJNIQ1IQ1IQ1IQ1IQ11TYEQ2)"},
    {" mc spacingmark ",
     R"(RX31QG1238412QB2QJ36222:1Q;1QJ3R21QJ38112QE2QJ1116222:1S62123313:1Q93QM4QM2QJ115221292L1>2QJ35313:)"
     R"(1Q:2R;368B2Z:2QO1U;2416122I2:327E22621:3QcH1N1T117812ZJ4234216W02QJ111911286TA1Q@1511512QM1N14221Q)"
     R"(L1231132Q@882U;1E1TiF2moC221RH2QB@T>2Q?1Q@24223S>222H1Q=111S=12251W=2121211iPC111SO1Q=342SC1H2QK1Q)"
     R"(@392=1RM33211U:3O2QJ214222391:2RD37121141211S538231S:3611421W=36421SA38211S=11261S711241X5391WG612)"
     R"(412111T>38441RD1M2QN1\G1>1S:17121VE54211ZN2<1Q@28211`_83Sa4QGS82h[C266)"},
    {" enclosingmark me ",
     R"(QT82UaD1Q`N413QQ\;3)"},
    {" mn nonspacingmark ",
     R"(h0S@XC5X9Q=11121211R8;Q@E@1S57262214Q31NKRK;QJ991H4191315Q;3QK9Q:H1Q0QG111484137:2M1QJ14481D2J122Q)"
     R"(I142422331N231;2QI1451241D2F611QJ121148172;2N1QM1<1QB131QG113531472;2M1QJ1216152D2L2QI24481D2M1R81)"
     R"(7311RJ127<8S2129;7R92K11111QG>15125;1Q491S64161222I243@4=12261?1eO3mB3M2N2N2R0217812;91Q=311SE2Q21)"
     R"(SF3429163VK221QJ1171111286:21Q@>1@QA4Q@1151151Q89<2Q042213QH1123113QJ822TH31=17416132V6R0f@=413<Ro)"
     R"(N3T=1S0Q0a:4S;2m^D14:Q02R@2X@13141I251TG2JB=1Q68I;Q>3Q@12422Q71R362222<181Q?1QC113225211Q:281W>121)"
     R"(41ci@1g1@@@n=1W21TE5Qd631254Q8341U52aM4R15YM2R?4R6;QA4SK1QF?Q9122:3QA42271QM3Q4518QN1<2QD9:421RO32)"
     R"(1126121TM138E2QI231Q5735R66=11111>2RE82311G1RD6114212W>46212K2RE82112S:1112611S51112415X3912X02114)"
     R"(1T@42241Q0:Q8624819623Q>=12\F71611RBF271212SJ631121711R823111ZK2;2QD55111G1UW516?[V8<33R^05QK7QPH1)"
     R"(QO4RA1cUH2Tc1Q>2Ga03A827N4TD3QmKQG4QB81>1F51?QZ@71A271215S41U07[G1QM4_L4WN2g07S=7hUmEW@)"},
    {" decimalnumber digit nd ",
     R"(Q@:Qa6:T6:V6:\L:SF:SF:SF:SF:SF:SF:SF:SF:SF:S0:SF:R6:XF:R6:Qj6:Q6:Y<:T0:U6:6:UF:RF:T6:6:QR^6:e6:Q6:)"
     R"(V6:F:RF:\F:dhF:Q\6:RT6:6:hL:T0:QL:T@:XF:ZF:SF:[F:S6:6DR<:]6:S6:dF:RF:WF:R6:]6:`^F:RY6:RF:T6:`F:gkF)"
     R"(:RfDQBRZ0:]6:_F:WG:jE:TdF:)"},
    {" letternumber nl ",
     R"(Ug>3Rc?Q324ScN1I9>3me;:fb@QE^<181T65XQ:S?)"},
    {" no othernumber ",
     R"(UB25123RYE6[H6SH3T57VI7A9]A:QQEDQSC:_01QdE1366:V6@Q91fFQLR>FcFNQ[91QTD4T::N81?Q0:Q7?m[@6fVAQ=R14A2)"
     R"(ZEKQ44QYD8I7Q79R;5F6U022@2Q>R09QD2N3R;5S88H8Q97Z:6[0OTN:Q:4S@7T6D[KDQZ52]>9k7CjCEbl67hNGiQ9D<DS<IU)"
     R"(Z>9m1QK1314R<Q=1?n2=)"},
    {" connectorpunctuation pc ",
     R"(RO1WnO2C1Qg^N2H3W?1)"},
    {" dashpunctuation pd ",
     R"(Q=1QZL1QC1Sb11QP51RP96S`1121O241L1]N1C1S?1Qc\@2Q51:1U91Sc01YN1)"},
    {" closepunctuation pe ",
     R"(Q91QC1O1SeM111QjN1R]91QG1?1cJ111N1QQN1111111111111R@1Q0111111111\D111111111111111111111R0111Q11QQ5)"
     R"(1111111Q<1111111]<1111111113111111122QcXN1VI1M11111111111111131A11111U:1QC1O12121)"},
    {" finalpunctuation pf ",
     R"(UK1WjM131L1S^81114121?131)"},
    {" initialpunctuation pi ",
     R"(U;1Wk<12221I1S^81114121?131)"},
    {" otherpunctuation po ",
     R"(Q1313211112:232K1R4151>271eN181^B6Q91QF12121Q<2D212=113R:4S61Q;>W93QF?O1X52:1T<1SH1SI1\61<1[?1RJ1:)"
     R"(2U8?11S@1R:542S?6U;1c49h51SL3R72TM313Q5614YI2VH2T0716U02:7L3SL4QK5QN2R08;1j22888924233;111:STJ412S)"
     R"(@1T?2432129121122:51:24111=23]<3QI1UM1mP22X=3S31:1SC6[L4RF2Q8311QA2Q?1S1=@2SL4SN2@2WI1da4721F1D224)"
     R"(3314736112TE313211112:232K1Q4122\J3dL1Q@1\N1g71V71O1X@9Q61S@7R27RI4mH5Q<4UM7S=214SN4Q@2R?441=113RH)"
     R"(6S;1Y:212SB5:211S81WJGS93L=R<1T23WL1X83TK1RL8RC315RM:VG1RO5Q:2d52R:=U?1QS@5RkL2^cK2T51R1581a83Y74Z)"
     R"(71cUL1W_75RkC1jN2)"},
    {" openpunctuation ps ",
     R"(Q81QB1O1SeN111QjN1R[N131Q61QG1?1cJ111N1QQN1111111111111R@1Q0111111111\D111111111111111111111R0111Q)"
     R"(11QQ51111111I1B1111111]<1111111113111111121QcY11VG1M11111111111111131A11111U:1QB1O13121)"},
    {" currencysymbol sc ",
     R"(Q41SM4QW91SK1_B2_B271WE1X71b51R\K1RV4Q1QQkG1e^31S<1TJ1VK232WoF4Q`hN1R]@1)"},
    {" modifiersymbol sk ",
     R"(RN111R71614131`94<>57111ASE1>2QX21UiD113;3=3=3=2TTL2mc3G92S72n@1>2dR6AkK111U21QmPG5)"},
    {" mathsymbol sm ",
     R"(Q;1@3QM111Q=141Q51O1gN1`?3VaK1=1Q73=3T;1Q7561R455241212171O22111OX<Q02RJ1NIQ86^E191QF8S?1Z@52O:@X0)"
     R"(T3FQO4Q02X2Q@E26QcnL1iH113U41@3QM111T3164S]12QbYA1I1O1I1O1I1O1I1O1I1Ui<2)"},
    {" othersymbol so ",
     R"(U61214111nA1X:2SO2V>1:1C2WG1`31[E1T2611T41V?1Q91\73?11326D11111T58161254V52g@:fC1fB1TMQ2[1:99Q\321)"
     R"(412:1126611111141;2>11211QJ295241212171O22111OX<84D272RA1NIQ86R8F;RAR>FUG191QF8S?1WHQ<Q<R0X0`0Q@E2)"
     R"(6Q72Q01S9W56[52Q>J1RI<VFJ@41=2<1E262Z@24:Q0Q691@O;N81?Q0:Q7?Z0V^0R0ed@QGk14:211aM3df6@SO1Q=3_41314)"
     R"(2=2YI9QIA231=31Q?Q=QcJ2b?1SSF1RTE84Abj:451dZF1Sk3W@@]DTLSDQLWF:Q72QL53F27N4QMER231UJRGQU9`0QG4QB81)"
     R"(>12Qf81RjL1T11fAQ<4S4<?2?1?1Q5GU1QHM=Q<4972>6TJWK5fH4A3=3SG4RO6<41?<4QH8:6Q88N2<42QNZD<>2=3:5QH7?2)"
     R"(;697TC1RL)"},
    {" lineseparator zl ",
     R"(XQ81)"},
    {" paragraphseparator zp ",
     R"(XQ91)"},
    {" spaceseparator zs ",
     R"(Q01SO1U^O1R[O;Q41Q?1Sm01)"},
    {" alpha alphabetic ",
     R"(R1J6JQ?1:1415G1O1^:4<>57111RF1MB1224116113111D1RC1T;8U61Q6216Q9Q7>111212118K44M;5QH17>S6184843:321)"
     R"(@Q@=S5HQ192415H2CCI7;5H16818Q::<376R<1@134?=C18222F17113438222211814215<2:14316422F171212124542224)"
     R"(17411A6;319131F17121539131231?4E44318222F171215382222924215=1@216331432111232333<4533133161Q8=131G)"
     R"(1@38131382132124L418131G1:15381313826214=3<=131Q9281313115475F6131B3H191127861118B2=QJ5761QC211151)"
     R"(H111C13251161>4Q01QO81Q44C4@1Q4R3QG1125@R0:42Q611512Q;1Z=142711142Q9142Q1142711142?1QI142R3Q5@@RF2)"
     R"(63c<2A1J5R;3;7D;E<D<=1312<QD2C>141R3RI7Q;5R6:O1<49GN25;Q<4JQFL4QO2DQB1G2;3QAQD1?18QCQ:24:Q<1;>QGF3)"
     R"(:Q42;5Q;23Q941612315V0CQ2;XF262Q626281111111O2QE1711331734264=5317SD1=1@=S51412:1135611111141;2455)"
     R"(41AQ9i=QDQhFW56432<Q611512QH71@G97171717171717171Q0Q?1^E3I975254RF631RJ145Q;1RNAQ0Q@@`0V^0R0ed=R3Q)"
     R"(>2X=3@:2DQ?583SAQ792S72R3221118ED1Q1HQD<R411Q<63113:Q15Q3=M3QC1<?1@@:51QG9>BG3R51111H32@24;6262697)"
     R"(171Q;1>6SKEZm4<G4QAXX4[>2S:Q67<55<1=151112121S<Q1[;BR02QFQ8<SD51T7Q4J6J;RI36262623Q3<1J1C121?2>Q2S)"
     R"(KR5QEX;M3QAQ?Q0=N5Q;5N2Q44815Q:TNBQ44Q44Q88QD<;1?17121;1?17123QD<YG9F:8H61Q:19R56211Q<12312G:G9OR1)"
     R"(C12:F:JR6QH62R041258131MQ:M3MQ381LKQF:F:C=BS>R9QGQC=QC=Q8Q2L315GWJQ:1232@3QG13M:18FQ:BQ>EKG9R6Q;5:)"
     R"(QI91=IGQCA48Q3319R01492:111Q3B1Q22164QN711141?1:7QIG418222F171215382222316157L:11211Q61:1121141231)"
     R"(11Q<R21314D3NR22211UHQF27I6Q2QO1131QKQF21R7K2>E7UIQIS7R0O82128121N122224RM82Q>261112KQC2:AR851BR9V)"
     R"(7Q1O91Q=1711QAN2F1>R97121Q<3112131122H6121Q5121411Z7G9A1Q933S?1R?lJS6S?AV4Rb<S1?QQ@A6ISlK5b7VeIQ?Q)"
     R"(fAaI7OAR?ANBQ@@4OE5C]@Q=VCR0T0R;4QI7AR0211<2>UoH8QVFQ9:Xg7417121Y3?1M321>48\<RX4S;5=397:41Uk1RE1R7)"
     R"(122122241<11171R11428171L141511371ZD2I1I1O1I1O1I1O1I1O1I18QiDO66VE71A2712155QNQ11S@Q=:7@1Z1NBQ<_4L)"
     R"(W4N21_?714121?1V5QKR43131QUD41K1211211:141111614111111312112111111111121124171414111:1A53151AcDJ6J)"
     R"(6JScFQYg0Q0TQJ6VN2Ud2>WYA?c>R]2`NQ_2Tj;5TS0)"},
    {" lower lowercase ",
     R"(S1JQ?1:141Q4H1811111111111111111111111111111111111111111111111111111112111111111111111211111111111)"
     R"(11111111111111111111111111111111111211113211121324121332121111121121121311122236121211111111111111)"
     R"(11211111111111111111221113111111111111111111111111111111111111111111111111111111111172122114111111)"
     R"(11R51Q472N5S01Q;1113124B1KQ31233111111111111111111111115112122QCQ@11111111111111111111111111111111)"
     R"(11911111111111111111111111111111111111111111111111111111211111111111121111111111111111111111111111)"
     R"(11111111111111111111111111111111111111111111111111111111111111111111Q@Q9Rj7Q;14gH6RT2911SEV0R11111)"
     R"(11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111)"
     R"(11111111111111111111111111111111111111111111119111111111111111111111111111111111111111111111111111)"
     R"(1111111111111111111111111111111111111111111111986:88886:8888>2888888512613312842288:312SI1=1@=S=13)"
     R"(231K14141228441Q1@41j;JQj6Q@1132111111411218311111111111111111111111111111111111111111111111111111)"
     R"(1111111111111111111111111111111111111111111112711141<Q61151nXC111111111111111111111111111111111111)"
     R"(111111111C111111111111111111111111113T511111111111131111111111111111111111111111111111111111111111)"
     R"(111111111111111:111121111111114111211311111111111111111111515111111111111111411121311111111111F311)"
     R"(13iEQ;1>6R@cj07<5QQ9JQV=Q8T8Q4TK;1?1712^31231Q:19QX5QCSMFRiJQ0e\0Q0i\JJJ71BJJJ411171;JJJJJJJJJJJJJ)"
     R"(JJJJLLI16JI16JI16JI16JI1611QiD:1D66X5QNRUDQ2)"},
    {" upper uppercase ",
     R"(R1JS5G17Q11111111111111111111111111111111111111111111111111111111211111111111111121111111111111111)"
     R"(11111111111111111111111111111121111321112132412133212111112112112131112317121212111111111111111211)"
     R"(11111111111111121211311111111111111111111111111111111111111111111111111111111117212211411111111Y11)"
     R"(113181611311121A19Q31233111111111111111111111115121122QCQ@1111111111111111111111111111111119111111)"
     R"(11111111111111111111111111111111111111111111111121111111111112111111111111111111111111111111111111)"
     R"(111111111111111111111111111111111111111111111111111111111112Q6Rj9Q61151fBRFRTC16Q;23Z0111111111111)"
     R"(11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111)"
     R"(11111111111111111111111111111111111111191111111111111111111111111111111111111111111111111111111111)"
     R"(1111111111111111111111111111111111111119886:88886;111111188R84<4<4<5;4X6141332321356111111424:251J)"
     R"(@C1iBJQi@Q@Q@1132111111411218311111111111111111111111111111111111111111111111111111111111111111111)"
     R"(111111111111111111111111111111811141nZ=111111111111111111111111111111111111111111111C1111111111111)"
     R"(11111111111111T7111111111111131111111111111111111111111111111111111111111111111111111111111:111121)"
     R"(111111141112111311111111111111111111515111111111111111411123151111111H1ei;JQV5Q8T8Q4TL;1?1712Qg:QC)"
     R"(TMFRiJQ0e\0Q0i]0JJJJJJ11221222418JJJ2142817K214151137KJJJJJJJJJJJNIQ1IQ1IQ1IQ1IQ11TYEQ2RP>J6J6J)"},
    {" space whitespace wspace ",
     R"(95B1S41J1U^O1R[O;M251Q?1Sm01)"},
    {" emoji ",
     R"(Q31615:S?141Wl=1<1VH1F1RJ6?2[?2<1U61I;43V71W72:191QJ415912122214121122131328351115<;2211211B122B61)"
     R"(11232512242;25221521112D256142141212611211111613161:2?12141114311;2Q@391>1>1[D2^?3C2QC141QVJ1<1bI1)"
     R"(11S_[:1V:1U02<2>12:R;J12G1D129E2U>Q22S@22132RC231X71QO;61H7228<1242142=221829153<38321114161316RFQ)"
     R"(@R658234:3112312:W3<41XKQ?1:1UIS@=3:5QH7?2;69)"},
    {" ecomp emojicomponent ",
     R"(Q31615:WnC1VE1QgY;1QlnFJ_K5Q]@4hQc<S0)"},
    {" emod emojimodifier ",
     R"(SloK5)"},
    {" ebase emojimodifierbase ",
     R"(Y`M1VK1@4ScSG1QL32123SE22;EC3143137111H1V9241E142U>335RC1@391;1aO12188619:23QH1QM21211A31=W53Q:9)"},
    {" emojipresentation epres ",
     R"(XhJ2V=43121`92E2QB<Q;1C1=182A2528151E1721141217142L1Q31114311QM3H1>1jK2QC141SaU>1V:1UN12:R;J11H1D1)"
     R"(2513E2U>Q1<91R61F<Q;45<A313R7111UK2QO=41HB1J2=1RFREQ@R661332344;279W3<41XKQ?1:1UIS@=3:5QH7?2;69)"},
    {" extendedpictographic extpict ",
     R"(U9141Wl=1<1VH1F1RJ6?2[?2<1RO1R61I;43V71W72:191QJ4161<1SB:SF2;1111613161:2?12141114311;5Q=391>1>1[D)"
     R"(2^?3C2QC141QVJ1<1bI111S_[6X0=3O1QL6<2>12:BQIK?:1D129149]B5YN8X:Q@T0SD<REQ;<4QH8:6Q88NRB<Q?1:1]IX0o)"
     R"(N)"},
    {" ideo ideographic ",
     R"(\P62I9>3n5V^0R0d`0fX0[>2S:mX:1KUoH8QVFQ9:YS7\<cX4QYg0Q0TQJ6VN2Ud2>WYA?c>R]2`NQ_2Tj;5TS0)"},
    {" uideo unifiedideograph ",
     R"(]P0V^0R0d`0f`>21112:1111223RQ^FQYg0Q0TQJ6VN2Ud2>WYA?c>T]2Tj;5TS0)"},
    {" hex hexdigit ",
     R"(Q@:76J6Qoe9:76J6)"},
    {" joinc joincontrol ",
     R"(XP<2)"},
    {" dash ",
     R"(Q=1QZL1QC1Sb11QP51RP96QM1Q71?1\61SP4121O241L1]N1C1S?1Qc\@2Q51:1U91Sc01YN1)"},
    {" qmark quotationmark ",
     R"(Q2141T31?1WjL8I2S`71^94=3Qca14UM141RJ2)"},
    {" radical ",
     R"([d0J1RI<VF)"},
    {" regionalindicator ri ",
     R"(Sl_6J)"},
    {" term terminalpunctuation ",
     R"(Q11:111;231iN181`11QI1R81>113UD1Q;;11W;2QF618O1X52QWD2U<146YG2hE8h51SL3R72TM331Q7422YJ2[24U22:213M)"
     R"(3UK5QN2m41G293SU?3YB1=141:11232]<2mWK2X=3W35[N2RF2RO1TG3TC3SO1@2WI1da6122QI314U91:111;231R1121QQJ1)"
     R"(Q@1QT61V71YF2TH6R46RI4mH5Q<4UM7S@4SO3T1261@2RH5S<1Y:2SE3<2[643?S92WI3`5111WK2RG242\N3Q=1d52R:2QY;5)"
     R"(a_I2T51R13:1a92Y72c`61W_74)"},
    {" sentenceterminal sterm ",
     R"(Q11<1@1QZ91TC3UD1Q;3WF1QM11132Y52Qg42hF142h51V62TM2Q=151YJ2[24U22:222M3UK2R12m41G293SU?3YB1=1F2]=1)"
     R"(mWL1X>2W3131[N2RF2RO1TH2TC3T@2WI1da6122QK132U91<1@1R11RgD2QWM5Q<4UM2SE4SO3T1261@2RH212S<1Y:2SE2[E2)"
     R"(5?S92WI3`5111WK2RG2]42eD2R:2bi92T51R12;1a92Y81c`61W_81)"},
    {" variationselector vs ",
     R"(VP;311Qi_@@jPg@W@)"},
    {" bidic bidicontrol ",
     R"(Q`L1V_A2J5QG4)"},
    {" nchar noncharactercodepoint ",
     R"(Qo^@Q0`>2QooN2QooN2QooN2QooN2QooN2QooN2QooN2QooN2QooN2QooN2QooN2QooN2QooN2QooN2QooN2QooN2)"},
    {" adlam adlm ",
     R"(SjX0R<4:42)"},
    {" ahom ",
     R"(RUh0K2?4G)"},
    {" anatolianhieroglyphs hluw ",
     R"(RaP0b7)"},
    {" arab arabic ",
     R"(Q`05161>131Q01:;J1S<1Q2R@Q@W@O125R;1MQlb@SC@[;2R@2QF71Q0@S@51T7Sk3OR33QG4Qgh041K1211211:1411116141)"
     R"(11111312112111111111121124171414111:1A53151AQD2)"},
    {" armenian armn ",
     R"(QYAQ62QB23Qm\35)"},
    {" avestan avst ",
     R"(RRh0QF37)"},
    {" bali balinese ",
     R"(Vh0R=1QB)"},
    {" bamu bamum ",
     R"(QYe0RHQ`X8aI)"},
    {" bass bassavah ",
     R"(Rjf@N26)"},
    {" batak batk ",
     R"(Vn0QD84)"},
    {" beng bengali ",
     R"(R\0418222F1711342922248142152I)"},
    {" bhaiksuki bhks ",
     R"(RWP091Q=1>:M)"},
    {" bopo bopomofo ",
     R"(g:2[`IQ;S@Q0)"},
    {" brah brahmi ",
     R"(RTP0R>4Q491)"},
    {" brai braille inbraillepatterns ",
     R"(ZP0X0)"},
    {" bugi buginese ",
     R"(V`0L22)"},
    {" buhd buhid ",
     R"(Uj0D)"},
    {" canadianaboriginal cans ",
     R"(UP0d0a@R6RP]J@)"},
    {" cari carian ",
     R"(RPe0QA)"},
    {" aghb caucasianalbanian ",
     R"(RQY@QD;1)"},
    {" cakm chakma ",
     R"(RTX0QE1B)"},
    {" cham ",
     R"(QZ`0QG9>2:24)"},
    {" cher cherokee ",
     R"(Tm0RF26QUkBR@)"},
    {" chorasmian chrs ",
     R"(RSm@L)"},
    {" common zyyy ",
     R"(0R1J6JQ?1?15G1O1^1Q7552DSD1916111cM161>131Q01TL1`41T12QVI1\E4Y21Q_?3R72V;211QV=1=174161321h5<2RG1;)"
     R"(3;1?AQ1QOQ613261K1AQ934dJF;Em0X0cD2Q01S9`0RN\BE111I?844RK231RJ2TC@Q0Q691Q@R0ORAQ?1RHU8V^0R0fX0Q2S6)"
     R"(3U5:WD1U01\;1>2d^B2V@:FQ31C14TC11Q0J6J;:1Q=2R0717:5X234Q=39R@=QCQ=W4KQ^]44SjLWJ6]DTLSDQLWF:Q72QN3A)"
     R"(827N4QMVED<D<RG9IT7RE1R7122122241<11171R11428171L141511371ZD2Y42QBUSAR4R<QMf2Q<4S4<?2?1?1Q5:U>QHJ1)"
     R"(2=Q<4972>6TJnH4A3=3SG4RO6<41?<4QH8:6Q88N2<42QNZD<>2=3:5QH7?2;697TC1S6hQP71NS0)"},
    {" copt coptic qaac ",
     R"(o2>ZT@SD57)"},
    {" cuneiform xsux ",
     R"(RXP0lJS6S?15;V4)"},
    {" cprt cypriot ",
     R"(RRP06211Q<123121)"},
    {" cpmn cyprominoan ",
     R"(R[l@S3)"},
    {" cyrillic cyrl ",
     R"(QP0T52U9Uj@;U01R<1TS7Q0nR0S0el>2Qh`0QNQ11)"},
    {" deseret dsrt indeseret ",
     R"(RQP0R@)"},
    {" deva devanagari ",
     R"(RX0RA4?2JQWk0Q0l`0:)"},
    {" diak divesakuru ",
     R"(RVX072128121N122<9:)"},
    {" dogr dogra ",
     R"(RVP0QL)"},
    {" dupl duployan ",
     R"(S_P0S;5=397:24)"},
    {" egyp egyptianhieroglyphs ",
     R"(R\P0QRF:SlK)"},
    {" elba elbasan ",
     R"(RQX0Q8)"},
    {" elym elymaic ",
     R"(RSo0G)"},
    {" ethi ethiopic ",
     R"(T`0R9142711142Q9142Q1142711142?1QI142R32Q03JV_6G9717171717171717oY2626269717R_UA714121?)"},
    {" gara garay ",
     R"(RSZ0Q63M82)"},
    {" geor georgian ",
     R"(TU0Q611512Q;14Rl@Q;23TR0Q61151)"},
    {" glag glagolitic ",
     R"([P0S0S\m071A271215)"},
    {" goth gothic ",
     R"(RPi@K)"},
    {" gran grantha ",
     R"(RTh0418222F1712152922232161572735)"},
    {" greek grek ",
     R"(k@4132411411113111D1QO>@VY65QB545RD1Z0F262Q626281111111O2QE1?1>261C2319Y71QRaN1e^JR?A1QdROR6)"},
    {" gujarati gujr ",
     R"(Rd1319131F1712152:131321?42<77)"},
    {" gong gunjalagondi ",
     R"(RW[06121Q512167:)"},
    {" gurmukhi guru ",
     R"(R`1316422F17121212211542233174117A)"},
    {" gukh gurungkhema ",
     R"(RhX0QJ)"},
    {" han hani ",
     R"([d0J1RI<VFQ?111I9>4n4V^0R0d`0fX0[>2S:mX82<2QTP>QYg0Q0TQJ6VN2Ud2>WYA?c>R]2`NQ_2Tj;5TS0)"},
    {" hang hangul ",
     R"(TX0X0Wa>2X1RNSAOR1Omg1Md3Zm4<G4QAYm4O36262623)"},
    {" hanifirohingya rohg ",
     R"(RSX0Q88:)"},
    {" hano hanunoo ",
     R"(Ui0E)"},
    {" hatr hatran ",
     R"(RRW0C1255)"},
    {" hebr hebrew ",
     R"(Q\AQG8K46QmY8J151112121:)"},
    {" hira hiragana ",
     R"(\R1RF63Rok1XOB1M3`U=1)"},
    {" armi imperialaramaic ",
     R"(RRR0F19)"},
    {" inherited qaai zinh ",
     R"(h0S@XE2^4;J1g04TZKO`131=17416132V6R0`<2V2Q1SiI4S;2Qc[5@@>n?1W21TRJ1Q^n4Q>2Ga03A827N4h[jBW@)"},
    {" inscriptionalpahlavi phli ",
     R"(RRk0C58)"},
    {" inscriptionalparthian prti ",
     R"(RRj0F28)"},
    {" java javanese ",
     R"(QZ\0R>2:42)"},
    {" kaithi kthi ",
     R"(RTT0R3:1)"},
    {" kannada knda ",
     R"(ST0=131G1:152913147262142:13)"},
    {" kana katakana ",
     R"(\U1RJ23W@@V@Q?1RHQcP>:1Q=Q\RB4171211XO3QB1>4)"},
    {" kawi ",
     R"(RWh0A1Q93M)"},
    {" kali kayahli ",
     R"(QZX0Q>11)"},
    {" khar kharoshthi ",
     R"(RR`041258131M234:79)"},
    {" khitansmallscript kits ",
     R"(Rko41VhK^FQ91)"},
    {" khmer khmr ",
     R"(Ul0RN2:6:_6Q0)"},
    {" khoj khojki ",
     R"(RT`0B1Q?)"},
    {" khudawadi sind ",
     R"(RTe@QK5:)"},
    {" kiratrai krai ",
     R"(RkZ0QJ)"},
    {" lao laoo ",
     R"(Sd1211151H111G2511171:24)"},
    {" latin latn ",
     R"(R1J6JQ?1?15G1O1^1Q75V`KQ66QA545=1R6R1X0[A1=1@=T=261K1AQ9RfGQ0ne2S63R3221118E>i@Q;1914clF7QPJJ6JRQ5)"
     R"(61Q:19Qej5O66)"},
    {" lepc lepcha ",
     R"(WP0QH3?33)"},
    {" limb limbu ",
     R"(VX0O1<4<413<)"},
    {" lina lineara ",
     R"(RQ`0YG9F:8)"},
    {" linb linearb ",
     R"(RPP0<1J1C121?2>Q2SK)"},
    {" lisu ",
     R"(QYV@Q@ne@1)"},
    {" lyci lycian ",
     R"(RPd0M)"},
    {" lydi lydian ",
     R"(RRY0J51)"},
    {" mahajani mahj ",
     R"(RTZ@Q7)"},
    {" maka makasar ",
     R"(RWg0I)"},
    {" malayalam mlym ",
     R"(SX0=131QC13164@2J)"},
    {" mand mandaic ",
     R"(RR0L21)"},
    {" mani manichaean ",
     R"(RRf0Q74<)"},
    {" marc marchen ",
     R"(RWS@Q02F1>)"},
    {" gonm masaramgondi ",
     R"(RWX07121Q<3112198:)"},
    {" medefaidrin medf ",
     R"(Rkb0RK)"},
    {" meeteimayek mtei ",
     R"(QZg0GV9Q>2:)"},
    {" mend mendekikakui ",
     R"(SjP0V52@)"},
    {" merc meroiticcursive ",
     R"(RR]0H4D2Q>)"},
    {" inmeroitichieroglyphs mero meroitichieroglyphs ",
     R"(RR\0Q0)"},
    {" miao plrd ",
     R"(Rkh0R;4QI7A)"},
    {" modi ",
     R"(RU`0R5;:)"},
    {" mong mongolian ",
     R"(VP02211D6RI7Q;Qo]E=)"},
    {" mro mroo ",
     R"(Rjb0O1:42)"},
    {" mult multani ",
     R"(RTd0711141?1;)"},
    {" myanmar mymr ",
     R"(TP0U0QVZ0OS1Q0kR@D)"},
    {" nabataean nbat ",
     R"(RRT0O89)"},
    {" nagm nagmundari ",
     R"(SiV@Q:)"},
    {" nand nandinagari ",
     R"(RV]082Q>2;)"},
    {" newtailue talu ",
     R"(V\0Q<4J6;32)"},
    {" newa ",
     R"(RUP0RL15)"},
    {" nko nkoo ",
     R"(Qn0QK23)"},
    {" nshu nushu ",
     R"(Rko11`\>\<)"},
    {" hmnp nyiakengpuachuehmong ",
     R"(ShX0Q=3>2:42)"},
    {" ogam ogham ",
     R"(Ud0M)"},
    {" inolchiki olchiki olck ",
     R"(WR@Q@)"},
    {" olonal onao ",
     R"(Si^@Q;41)"},
    {" hung oldhungarian ",
     R"(RST0QC=QC76)"},
    {" ital olditalic ",
     R"(RPh0Q493)"},
    {" inoldnortharabian narb oldnortharabian ",
     R"(RRd0Q0)"},
    {" oldpermic perm ",
     R"(RPj@Q;)"},
    {" oldpersian xpeo ",
     R"(RPm0Q44>)"},
    {" oldsogdian sogo ",
     R"(RSh0Q8)"},
    {" inoldsoutharabian oldsoutharabian sarb ",
     R"(RRc0Q0)"},
    {" oldturkic orkh ",
     R"(RSP0R9)"},
    {" olduyghur ougr ",
     R"(RSk@J)"},
    {" oriya orya ",
     R"(Rh1318222F1712152922237342152B)"},
    {" osage osge ",
     R"(RQU@Q44Q4)"},
    {" osma osmanya ",
     R"(RQT0N2:)"},
    {" hmng pahawhhmong ",
     R"(Rjh0R6::171E5C)"},
    {" inpalmyrene palm palmyrene ",
     R"(RRS0Q0)"},
    {" pauc paucinhau ",
     R"(RVf0QI)"},
    {" phag phagspa ",
     R"(QZR0QH)"},
    {" phnx phoenician ",
     R"(RRX0L31)"},
    {" phlp psalterpahlavi ",
     R"(RRl0B74<7)"},
    {" rejang rjng ",
     R"(QZY@Q4;1)"},
    {" runic runr ",
     R"(Ue0R;3;)"},
    {" samaritan samr ",
     R"(RP0Q>2?)"},
    {" saur saurashtra ",
     R"(QZT0R68<)"},
    {" insharada sharada shrd ",
     R"(RT\0S0)"},
    {" inshavian shavian shaw ",
     R"(RQR@Q@)"},
    {" sidd siddham ",
     R"(RU\0QF2Q6)"},
    {" sgnw signwriting ",
     R"(SfP0d<?51?)"},
    {" sinh sinhala ",
     R"(S\131B3H191127314611186:23RPo<D)"},
    {" sogd sogdian ",
     R"(RSi@Q:)"},
    {" sora sorasompeng ",
     R"(RTV@I7:)"},
    {" soyo soyombo ",
     R"(RVb@RC)"},
    {" sund sundanese ",
     R"(Vl0R0X08)"},
    {" sunu sunuwar ",
     R"(RVn0Q2>:)"},
    {" sylo sylotinagri ",
     R"(QZP0Q=)"},
    {" syrc syriac ",
     R"(Qh0>1QL23X@;)"},
    {" tagalog tglg ",
     R"(Uh0F91)"},
    {" tagb tagbanwa ",
     R"(Uk0=1312)"},
    {" taile tale ",
     R"(VZ@N25)"},
    {" lana taitham ",
     R"(Va0QO1M2;6:6>)"},
    {" taiviet tavt ",
     R"(QZd0R3H5)"},
    {" takr takri ",
     R"(RUd0QJ6:)"},
    {" tamil taml ",
     R"(Rl2216331432111232333<4533142161>ERTn5QB=1)"},
    {" tangsa tnsa ",
     R"(Rjc@R?1:)"},
    {" tang tangut ",
     R"(Rko01OUoH8h0`09)"},
    {" telu telugu ",
     R"(SP0=131G1@291314721321242:79)"},
    {" thaa thaana ",
     R"(Ql0QB)"},
    {" thai ",
     R"(S`1QJ5L)"},
    {" tibetan tibt ",
     R"(Sh0R81Q44Q71Q41?1742)"},
    {" tfng tifinagh ",
     R"([Y@QH72>1)"},
    {" tirh tirhuta ",
     R"(RUT0R88:)"},
    {" todhri todr ",
     R"(RQ^0QD)"},
    {" toto ",
     R"(Shd@O)"},
    {" tulutigalari tutg ",
     R"(RTl0:11211Q61:1121141:1282)"},
    {" ugar ugaritic ",
     R"(RPl0N11)"},
    {" vai vaii ",
     R"(QYX0Y<)"},
    {" vith vithkuqi ",
     R"(RQ[@;1?17121;1?1712)"},
    {" wancho wcho ",
     R"(Shf0QJ51)"},
    {" wara warangciti ",
     R"(RVU0RC<1)"},
    {" yezi yezidi ",
     R"(RSd0Q:1322)"},
    {" yi yiii ",
     R"(QXP0QT=3QG)"},
    {" zanabazarsquare zanb ",
     R"(RV`0R8)"},
    {"", ""}};

// Names with first >> 4 and size >> 4.
const std::string_view kBlocks =
    R"(basiclatin 08 latin1supplement 88 latinextendeda @8 latinextendedb H= ipaextensions Q56 spacingmodi)"
    R"(fierletters Q;5 combiningdiacriticalmarks Q@7 greekandcoptic QG9 cyrillic R0@ cyrillicsupplement R@)"
    R"(3 armenian RC6 hebrew RI7 arabic S0@ syriac S@5 arabicsupplement SE3 thaana SH4 nko SL4 samaritan T)"
    R"(04 mandaic T42 syriacsupplement T61 arabicextendedb T73 arabicextendeda T:6 devanagari T@8 bengali )"
    R"(TH8 gurmukhi U08 gujarati U88 oriya U@8 tamil UH8 telugu V08 kannada V88 malayalam V@8 sinhala VH8 )"
    R"(thai W08 lao W88 tibetan W@@ myanmar X0: georgian X:6 hanguljamo X@@ ethiopic Y0H ethiopicsupplemen)"
    R"(t YH2 cherokee YJ6 unifiedcanadianaboriginalsyllabics Z0Q8 ogham [82 runic [:6 tagalog [@2 hanunoo )"
    R"([B2 buhid [D2 tagbanwa [F2 khmer [H8 mongolian \0; unifiedcanadianaboriginalsyllabicsextended \;5 l)"
    R"(imbu \@5 taile \E3 newtailue \H6 khmersymbols \N2 buginese ]02 taitham ]29 combiningdiacriticalmark)"
    R"(sextended ];5 balinese ]@8 sundanese ]H4 batak ]L4 lepcha ^05 olchiki ^53 cyrillicextendedc ^81 geo)"
    R"(rgianextended ^93 sundanesesupplement ^<1 vedicextensions ^=3 phoneticextensions ^@8 phoneticextens)"
    R"(ionssupplement ^H4 combiningdiacriticalmarkssupplement ^L4 latinextendedadditional _0@ greekextende)"
    R"(d _@@ generalpunctuation `07 superscriptsandsubscripts `73 currencysymbols `:3 combiningdiacritical)"
    R"(marksforsymbols `=3 letterlikesymbols `@5 numberforms `E4 arrows `I7 mathematicaloperators a0@ misc)"
    R"(ellaneoustechnical a@@ controlpictures b04 opticalcharacterrecognition b42 enclosedalphanumerics b6)"
    R"(: boxdrawing b@8 blockelements bH2 geometricshapes bJ6 miscellaneoussymbols c0@ dingbats c@< miscel)"
    R"(laneousmathematicalsymbolsa cL3 supplementalarrowsa cO1 braillepatterns d0@ supplementalarrowsb d@8)"
    R"( miscellaneousmathematicalsymbolsb dH8 supplementalmathematicaloperators e0@ miscellaneoussymbolsan)"
    R"(darrows e@@ glagolitic f06 latinextendedc f62 coptic f88 georgiansupplement f@3 tifinagh fC5 ethiop)"
    R"(icextended fH6 cyrillicextendeda fN2 supplementalpunctuation g08 cjkradicalssupplement g88 kangxira)"
    R"(dicals g@> ideographicdescriptioncharacters gO1 cjksymbolsandpunctuation h04 hiragana h46 katakana )"
    R"(h:6 bopomofo h@3 hangulcompatibilityjamo hC6 kanbun hI1 bopomofoextended hJ2 cjkstrokes hL3 katakan)"
    R"(aphoneticextensions hO1 enclosedcjklettersandmonths i0@ cjkcompatibility i@@ cjkunifiedideographsex)"
    R"(tensiona j0\L yijinghexagramsymbols QVL4 cjkunifiedideographs QW0QY0 yisyllables R`0R9 yiradicals R)"
    R"(b94 lisu Rb=3 vai Rb@D cyrillicextendedb Rc46 bamum Rc:6 modifiertoneletters Rc@2 latinextendedd Rc)"
    R"(B> sylotinagri Rd03 commonindicnumberforms Rd31 phagspa Rd44 saurashtra Rd86 devanagariextended Rd>)"
    R"(2 kayahli Rd@3 rejang RdC3 hanguljamoextendeda RdF2 javanese RdH6 myanmarextendedb RdN2 cham Re06 m)"
    R"(yanmarextendeda Re62 taiviet Re86 meeteimayekextensions Re>2 ethiopicextendeda Re@3 latinextendede )"
    R"(ReC4 cherokeesupplement ReG5 meeteimayek ReL4 hangulsyllables Rf0eK hanguljamoextendedb S[K5 highsu)"
    R"(rrogates S\0QH highprivateusesurrogates S]H8 lowsurrogates S^0R0 privateusearea S`0\@ cjkcompatibil)"
    R"(ityideographs Sl@Q0 alphabeticpresentationforms Sm@5 arabicpresentationformsa SmEQ; variationselect)"
    R"(ors So01 verticalforms So11 combininghalfmarks So21 cjkcompatibilityforms So32 smallformvariants So)"
    R"(52 arabicpresentationformsb So79 halfwidthandfullwidthforms So@? specials SoO1 linearbsyllabary TP0)"
    R"(8 linearbideograms TP88 aegeannumbers TP@4 ancientgreeknumbers TPD5 ancientsymbols TPI4 phaistosdis)"
    R"(c TPM3 lycian TQ82 carian TQ:4 copticepactnumbers TQ>2 olditalic TQ@3 gothic TQC2 oldpermic TQE3 ug)"
    R"(aritic TQH2 oldpersian TQJ4 deseret TR05 shavian TR53 osmanya TR83 osage TR;5 elbasan TR@3 caucasia)"
    R"(nalbanian TRC4 vithkuqi TRG5 todhri TRL4 lineara TS0H latinextendedf TSH4 cypriotsyllabary TT04 imp)"
    R"(erialaramaic TT42 palmyrene TT62 nabataean TT83 hatran TT>2 phoenician TT@2 lydian TTB2 meroitichie)"
    R"(roglyphs TTH2 meroiticcursive TTJ6 kharoshthi TU06 oldsoutharabian TU62 oldnortharabian TU82 manich)"
    R"(aean TU<4 avestan TU@4 inscriptionalparthian TUD2 inscriptionalpahlavi TUF2 psalterpahlavi TUH3 old)"
    R"(turkic TV05 oldhungarian TV88 hanifirohingya TV@4 garay TVD5 ruminumeralsymbols TW62 yezidi TW84 ar)"
    R"(abicextendedc TW<4 oldsogdian TW@3 sogdian TWC4 olduyghur TWG4 chorasmian TWK3 elymaic TWN2 brahmi )"
    R"(TX08 kaithi TX85 sorasompeng TX=3 chakma TX@5 mahajani TXE3 sharada TXH6 sinhalaarchaicnumbers TXN2)"
    R"( khojki TY05 multani TY83 khudawadi TY;5 grantha TY@8 tulutigalari TYH8 newa TZ08 tirhuta TZ86 sidd)"
    R"(ham TZH8 modi T[06 mongoliansupplement T[62 takri T[85 myanmarextendedc T[=3 ahom T[@5 dogra T\05 w)"
    R"(arangciti T\:6 divesakuru T\@6 nandinagari T\J6 zanabazarsquare T]05 soyombo T]56 unifiedcanadianab)"
    R"(originalsyllabicsextendeda T];1 paucinhau T]<4 devanagariextendeda T]@6 sunuwar T]L4 bhaiksuki T^07)"
    R"( marchen T^75 masaramgondi T^@6 gunjalagondi T^F5 makasar T_>2 kawi T_@6 lisusupplement T_K1 tamils)"
    R"(upplement T_L4 cuneiform T`0R0 cuneiformnumbersandpunctuation Tb08 earlydynasticcuneiform Tb8= cypr)"
    R"(ominoan TgI7 egyptianhieroglyphs Th0R3 egyptianhieroglyphformatcontrols Tj33 egyptianhieroglyphsext)"
    R"(endeda Tj6WJ anatolianhieroglyphs UR0Q8 gurungkhema U`@4 bamumsupplement Ud0Q4 mro Ue43 tangsa Ue76)"
    R"( bassavah Ue=3 pahawhhmong Ue@9 kiratrai UfD4 medefaidrin Ug46 miao Ug@: ideographicsymbolsandpunct)"
    R"(uation UgN2 tangut Uh0\0 tangutcomponents VT0Q@ khitansmallscript VU@Q0 tangutsupplement VV@8 kanae)"
    R"(xtendedb VgO1 kanasupplement Vh0@ kanaextendeda Vh@3 smallkanaextension VhC4 nushu VhGI duployan Vn)"
    R"(0: shorthandformatcontrols Vn:1 symbolsforlegacycomputingsupplement WV0Q< znamennymusicalnotation W)"
    R"(W@= byzantinemusicalsymbols WX0@ musicalsymbols WX@@ ancientgreekmusicalnotation WY05 kaktoviknumer)"
    R"(als WY<2 mayannumerals WY>2 taixuanjingsymbols WY@6 countingrodnumerals WYF2 mathematicalalphanumer)"
    R"(icsymbols WZ0R0 suttonsignwriting W\0Q; latinextendedg W_@@ glagoliticsupplement W`03 cyrillicexten)"
    R"(dedd W`36 nyiakengpuachuehmong W`@5 toto Wa93 wancho Wa<4 nagmundari Wb=3 olonal WbM3 ethiopicexten)"
    R"(dedb WcN2 mendekikakui Wd0> adlam Wd@6 indicsiyaqnumbers Wf75 ottomansiyaqnumbers Wf@5 arabicmathem)"
    R"(aticalalphabeticsymbols Wg0@ mahjongtiles Wh03 dominotiles Wh37 playingcards Wh:6 enclosedalphanume)"
    R"(ricsupplement Wh@@ enclosedideographicsupplement Wi0@ miscellaneoussymbolsandpictographs Wi@Q@ emot)"
    R"(icons Wk05 ornamentaldingbats Wk53 transportandmapsymbols Wk88 alchemicalsymbols Wk@8 geometricshap)"
    R"(esextended WkH8 supplementalarrowsc Wl0@ supplementalsymbolsandpictographs Wl@@ chesssymbols Wm07 s)"
    R"(ymbolsandpictographsextendeda Wm79 symbolsforlegacycomputing Wm@@ cjkunifiedideographsextensionb XP)"
    R"(0Rc> cjkunifiedideographsextensionc Zc@X4 cjkunifiedideographsextensiond ZkD> cjkunifiedideographse)"
    R"(xtensione Zl2[9 cjkunifiedideographsextensionf [W;^D cjkunifiedideographsextensioni [eOQ7 cjkcompat)"
    R"(ibilityideographssupplement [l0Q2 cjkunifiedideographsextensiong \P0YE cjkunifiedideographsextensio)"
    R"(nh \YEX6 tags QhP08 variationselectorssupplement QhP@? supplementaryprivateuseareaa QlP0TP0 supplem)"
    R"(entaryprivateuseareab RPP0TP0 )";

// Runs of characters that fold to another: gap from the run before, step, count, distance (zigzag).
const std::string_view kFolds =
    R"(R118R091AR0S;11Q`>;1GR0H17R0Q82H2QB2327282A2G2Q>11WA1232611`G211]41222411\L1112212\J2112311TN111\D1)"
    R"(11\F1112211\J111\N211]6111]21112411]6111]:211]<1232611]D1112211]D3112211]D1112212]B2222411]F1112411)"
    R"(2811411122114111221141292C292C1141222411V1111S?12D2Q811X32292H11eRF1112211Z5111eR@3112211\5111T:111)"
    R"(T>1252WO11W8Q;2226112911W8711R<213R:411T0212SN31AR0B19R0O112=11@111QK111QA411M111Q;22<2H11S;111RO31)"
    R"(1SG111SO2112211=1112313X331@U0@1Q0R0R@2A2Q:2K2QF11N1272?2Q@2S11Q6S0Rk?1Q6^V0Q711^V0611^V0i;16?RT811)"
    R"(\TK111\TI111\T7112\T3211\T5111\SG111\R7111RTl6111271Q;UkOQ=13UkOZ32R;2TK11SC52Q@2S818?@16?@18?@18?@)"
    R"(16?A24??18?R@12?212TC411^P9:14U;@12?212V7>12?212VO211=<12WO212WKY<11^eI411`[M111`T;711QHQ>1@Q0Q3112)"
    R"(iC1JQDQj:1Q@S0S0112211do=111W^;111dn=3232611eQG111doI111eQM111eQK21123112912eSM22QB2S;2227112nZ>2G2)"
    R"(R02>2U2272@2O2R7222411RUP71252=112211Rbb?322262:2D11Rbd7111RbdM111RbdE111Rbd1111Rbd7211Rba3111RbbC1)"
    R"(11Rba9111Qj01282@11RO111Rbd5111RUS?1222411Rbf=111241126232611RcT1I112kK1R@R[lOdmA1JR0QVO1Q8R@U@1Q4R)"
    R"(@V01;R><1?R>@17R>812R>Qg<1QCT0V@1FR0Rj@1Q0R0e]01Q0R0nf01Q2R4)";

// Characters that fold to several, and the first two of what they fold to.
const std::string_view kFoldsToSeveral =
    R"(VO1S91U61\O1O1^F1VX>531UA1111111Q9Q@2312415312415222:312:31241Qfh37<5)";
const std::string_view kSeveral =
    R"(S1eNS6S6S6S9S6S<S8iAS:h<SCSCSCSDSDh8SGh:SIh:eLS>m<mIm>mImAj2mAmImGj2mGmImIh8mIj2n1hCn5h8n5hCn5j2n9j)"
    R"(2n9mIn>mIQ[5Q\2Q[DQ[5Q[DQ[;Q[DQ[=Q[DQ[FQ[NQ[FWh0mIWh1mIWh2mIWh3mIWh4mIWh5mIWh6mIWh7mIWi0mIWi1mIWi2m)"
    R"(IWi3mIWi4mIWi5mIWi6mIWi7mIWk0mIWk1mIWk2mIWk3mIWk4mIWk5mIWk6mIWk7mIWk@mIWkDmIWkLmI)";

}  // namespace fovea::tables
