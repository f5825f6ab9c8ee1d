// Shared by all passes of the flock. Two heads of attention attend to the same keys, each with its own reach.
#ifndef ACCESS
#define ACCESS  // the vertex shader only reads
#endif
layout(set = 0, binding = 0) ACCESS buffer Birds { vec4 birds[]; };    // place, velocity
layout(set = 0, binding = 1) ACCESS buffer Queries { vec4 queries[]; };  // [2 heads, birds, 4]
layout(set = 0, binding = 2) ACCESS buffer Keys { vec4 keys[]; };        // [birds, 4]
layout(set = 0, binding = 3) ACCESS buffer Values { vec4 values[]; };    // [birds, 4]
layout(set = 0, binding = 4) readonly buffer Means { vec4 means[]; };    // [2 heads, birds, 4], by attention
layout(set = 0, binding = 5) readonly buffer Sums { float log_sums[]; };  // [2 heads, birds], by attention
layout(push_constant) uniform Push {
    uint bird_count;
    float near_reach, far_reach;  // reaches of the two heads, in units of the picture's half width
    float seconds;                // since the last frame
    float attention_weight;       // 0: birds fly straight
};
