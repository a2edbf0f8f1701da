#include "analyzer/export/sqlite_schema.h"

namespace fragtrace::analyzer {

// SQLite keeps the comments inside of statements, so `.schema` shows them. The application id
// is "FTdb".
const char* const kSqliteTables = R"sql(
PRAGMA application_id = 0x46546462;
PRAGMA user_version = 1;

CREATE TABLE meta (
    key TEXT PRIMARY KEY,  -- facts about the recording and about this file
    value
) WITHOUT ROWID;

CREATE TABLE facts (
    key TEXT PRIMARY KEY,  -- as in `fraganalyze dump --facts`
    value TEXT
) WITHOUT ROWID;

CREATE TABLE devices (
    device INTEGER PRIMARY KEY,
    name TEXT,
    is_virtual INTEGER,
    has_pool INTEGER,         -- 0: no caching pool was recorded, so every allocation is a block
    total_bytes INTEGER,
    others_bytes INTEGER,     -- context, libraries, other processes
    capacity_bytes INTEGER,   -- bytes for the pool: total - others
    limit_bytes INTEGER,      -- PyTorch's own memory limit
    settings TEXT,            -- of the allocator
    peak_requested_bytes INTEGER,
    peak_allocated_bytes INTEGER,
    peak_active_bytes INTEGER,
    peak_reserved_bytes INTEGER,
    segments_allocated INTEGER,
    segments_freed INTEGER,
    retries INTEGER,
    ooms INTEGER,
    steps_from TEXT           -- how steps were found: phases, recurrence or none
);

CREATE TABLE streams (
    stream INTEGER PRIMARY KEY,
    handle                    -- 0 = the default stream
);

CREATE TABLE pools (
    pool INTEGER PRIMARY KEY, -- private pools; the default pool has no number
    owner TEXT,               -- pytorch, cuda, program or unknown
    name TEXT
);

CREATE TABLE stacks (
    stack INTEGER PRIMARY KEY,  -- 0 = no stack was recorded
    line TEXT,                  -- the line of the program that reports name
    label TEXT                  -- the program's own label for a block
);

CREATE TABLE frames (
    frame INTEGER PRIMARY KEY,
    function TEXT,
    file TEXT,
    line INTEGER,
    module TEXT,              -- native: path of the shared object
    language TEXT             -- python or native
);

CREATE TABLE stack_frames (
    stack INTEGER,
    position INTEGER,         -- 0 = the innermost frame
    frame INTEGER,
    PRIMARY KEY (stack, position)
) WITHOUT ROWID;

CREATE TABLE events (
    event INTEGER PRIMARY KEY,  -- from 0; as in `fraganalyze dump` if all events were read
    time_ns INTEGER,            -- since the start of the recording
    device INTEGER,
    kind TEXT,
    address,                    -- an address or a handle
    bytes INTEGER,              -- of the block or the memory that the event is about
    requested_bytes INTEGER,    -- block_alloc, block_out_of_memory
    stream INTEGER,
    pool INTEGER,               -- NULL = the default pool, or no pool is involved
    thread INTEGER,
    stack INTEGER,
    duration_ns INTEGER,        -- of the call to the driver
    phase INTEGER,              -- innermost phase of the program
    step INTEGER,               -- of the device
    partner INTEGER,            -- the free of an allocation, the allocation of a free
    flags TEXT,                 -- words, as in `fraganalyze dump`
    details TEXT                -- JSON: the event's other values
);

CREATE TABLE blocks (
    block INTEGER PRIMARY KEY,
    device INTEGER,
    address,
    bytes INTEGER,
    requested_bytes INTEGER,
    stream INTEGER,
    stack INTEGER,
    start_event INTEGER,
    freed_event INTEGER,      -- the program freed it; NULL = never
    end_event INTEGER,        -- it could be reused; later than freed_event if streams still used it
    start_ns INTEGER,
    freed_ns INTEGER,
    end_ns INTEGER,
    step INTEGER,             -- step of start_event
    freed_step INTEGER        -- step of freed_event
);

CREATE TABLE segments (
    segment INTEGER PRIMARY KEY,
    device INTEGER,
    address,
    bytes INTEGER,
    page_bytes INTEGER,       -- expandable segment: its smallest part; else NULL
    pool INTEGER,             -- NULL = the default pool
    stream INTEGER,
    is_small INTEGER,         -- 1: for blocks of at most 1 MiB
    start_event INTEGER,
    end_event INTEGER,        -- NULL = never
    start_ns INTEGER,
    end_ns INTEGER
);

CREATE TABLE outside (
    device INTEGER,           -- memory of the card outside the pool
    event INTEGER,            -- the value holds from this event on
    time_ns INTEGER,
    bytes INTEGER
);

CREATE TABLE phases (
    phase INTEGER PRIMARY KEY,
    name TEXT,
    kind TEXT,                -- api, nvtx or cell
    library TEXT,             -- the library that marked it; NULL = the program
    thread INTEGER,
    depth INTEGER,            -- open phases around it on its thread
    start_event INTEGER,
    end_event INTEGER,        -- NULL = still open at the end
    start_ns INTEGER,
    end_ns INTEGER
);

CREATE TABLE steps (
    device INTEGER,
    step INTEGER,             -- from 1
    start_event INTEGER,
    end_event INTEGER,        -- the first event of the next step; NULL = the last step
    start_ns INTEGER,
    end_ns INTEGER,
    PRIMARY KEY (device, step)
) WITHOUT ROWID;

CREATE TABLE failures (
    failure INTEGER PRIMARY KEY,
    device INTEGER,
    event INTEGER,
    time_ns INTEGER,
    kind TEXT,                -- out_of_memory, retry, or call_out_of_memory
    requested_bytes INTEGER,
    stack INTEGER,            -- of the request
    phase INTEGER,
    step INTEGER,
    requester TEXT,           -- pool, program or library; call_out_of_memory: the function
    verdict TEXT,             -- NULL = not diagnosed
    sentence TEXT,            -- the verdict in words
    despite_free_memory INTEGER,
    rounded_bytes INTEGER,
    free_bytes INTEGER,       -- in the pool
    largest_free_bytes INTEGER,
    largest_usable_bytes INTEGER,
    device_free_bytes INTEGER,
    allocated_bytes INTEGER,
    reserved_bytes INTEGER,
    released_bytes INTEGER,   -- retry: returned to the driver
    culprit TEXT              -- the line of the program to look at first, as a sentence
);

CREATE TABLE culprits (
    failure INTEGER,          -- lines whose blocks keep free memory from being released
    line TEXT,
    held_open_bytes INTEGER,
    live_bytes INTEGER,
    blocks INTEGER
);

CREATE TABLE holders (
    device INTEGER,           -- kinds of memory at the failures, else at the peak
    event INTEGER,
    at_peak INTEGER,
    category TEXT,            -- estimate, see metrics.md
    user_category TEXT,       -- by --categories; '' = no rule matches
    bytes INTEGER,
    blocks INTEGER,
    earlier_bytes INTEGER,    -- allocated before the step of the event
    old_bytes INTEGER         -- allocated before the last complete step
);

CREATE TABLE holding_lines (
    device INTEGER,           -- the lines that held most at the same moments
    event INTEGER,
    at_peak INTEGER,
    line TEXT,
    category TEXT,
    user_category TEXT,
    bytes INTEGER,
    blocks INTEGER
);

CREATE TABLE gaps (
    start_event INTEGER,      -- recording was stopped, or events were not read
    end_event INTEGER,
    freed_blocks INTEGER,
    freed_bytes INTEGER,
    made_blocks INTEGER,
    made_bytes INTEGER,
    events_left_out INTEGER   -- recorded, but not read (--events); 0 = recording was stopped
);

CREATE TABLE moment (
    event INTEGER,            -- the views show the memory right after this event
    time_ns INTEGER
);
)sql";

const char* const kSqliteIndexesAndViews = R"sql(
CREATE INDEX events_by_kind ON events (kind);
CREATE INDEX blocks_by_address ON blocks (address);
CREATE INDEX blocks_by_stack ON blocks (stack);

-- Either column of `moment` can be set; the other one follows.
CREATE TRIGGER moment_by_event AFTER UPDATE OF event ON moment
WHEN NEW.event IS NOT OLD.event
BEGIN
    UPDATE moment SET time_ns = (SELECT time_ns FROM events WHERE event = NEW.event);
END;
CREATE TRIGGER moment_by_time AFTER UPDATE OF time_ns ON moment
WHEN NEW.time_ns IS NOT (SELECT time_ns FROM events WHERE event = NEW.event)
BEGIN
    UPDATE moment
    SET event = (SELECT event FROM events WHERE time_ns <= NEW.time_ns ORDER BY event DESC LIMIT 1);
END;

CREATE VIEW stack_traces AS
SELECT stack, position, function, file, line, module, language
FROM stack_frames JOIN frames USING (frame);

CREATE VIEW live_blocks AS
SELECT block, device, address, bytes, requested_bytes, stream, stack, stacks.line,
       blocks.start_event, start_ns, step,
       ifnull(freed_event <= moment.event, 0) AS is_pending
FROM moment
CROSS JOIN blocks ON start_event <= moment.event
    AND (end_event IS NULL OR end_event > moment.event)
JOIN stacks USING (stack);

CREATE VIEW largest_blocks AS
SELECT * FROM live_blocks ORDER BY bytes DESC, block;

CREATE VIEW holders_by_line AS
SELECT device, line,
       sum(iif(is_pending, 0, bytes)) AS bytes,
       sum(NOT is_pending) AS blocks,
       sum(iif(is_pending, bytes, 0)) AS pending_bytes
FROM live_blocks
GROUP BY device, line
ORDER BY bytes DESC, line;

-- Adjacent parts of an expandable segment are one segment.
CREATE VIEW mapped_ranges AS
WITH parts AS (
    SELECT segments.*,
           ifnull(page_bytes = lag(page_bytes) OVER w
                  AND address = lag(address + bytes) OVER w
                  AND pool IS lag(pool) OVER w
                  AND stream IS lag(stream) OVER w, 0) AS goes_on
    FROM moment
    CROSS JOIN segments ON start_event <= moment.event
        AND (end_event IS NULL OR end_event > moment.event)
    WHERE typeof(address) = 'integer'
    WINDOW w AS (PARTITION BY device ORDER BY address)
), numbered AS (
    SELECT *, sum(NOT goes_on) OVER (PARTITION BY device ORDER BY address) AS number FROM parts
)
SELECT device, min(address) AS address, sum(bytes) AS bytes, pool, stream, is_small,
       page_bytes, min(start_event) AS start_event, min(start_ns) AS start_ns
FROM numbered
GROUP BY device, number;

-- Walks over segments and blocks by address. A range is free from the end of everything before it
-- (`reached`) to the next block or the end of the segment.
CREATE VIEW holes AS
WITH places AS (
    SELECT device, address, 0 AS is_block, address AS reach, address + bytes AS segment_end,
           pool, stream
    FROM mapped_ranges
    UNION ALL
    SELECT device, address, 1, address + bytes, NULL, NULL, NULL
    FROM live_blocks
    WHERE typeof(address) = 'integer'
), walk AS (
    SELECT device, is_block,
           max(iif(is_block, NULL, address)) OVER w AS segment_address,
           max(segment_end) OVER w AS segment_end,
           max(reach) OVER w AS reached,
           lead(address) OVER w AS next
    FROM places
    WINDOW w AS (PARTITION BY device ORDER BY address, is_block
                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
SELECT walk.device, reached AS address,
       min(segment_end, ifnull(next, segment_end)) - reached AS bytes,
       segment_address, pool, stream
FROM walk
JOIN mapped_ranges ON mapped_ranges.device = walk.device
    AND mapped_ranges.address = segment_address
WHERE min(segment_end, ifnull(next, segment_end)) > reached;

CREATE VIEW live_segments AS
SELECT device, mapped_ranges.address, mapped_ranges.bytes,
       mapped_ranges.bytes - ifnull(free.bytes, 0) AS in_use_bytes,
       ifnull(free.bytes, 0) AS free_bytes,
       ifnull(free.largest, 0) AS largest_hole_bytes,
       pool, stream, is_small, page_bytes, start_event, start_ns
FROM mapped_ranges
LEFT JOIN (
    SELECT device AS of_device, segment_address, sum(bytes) AS bytes, max(bytes) AS largest
    FROM holes GROUP BY 1, 2
) AS free ON of_device = device AND segment_address = mapped_ranges.address;

CREATE VIEW memory_over_time AS
WITH changes AS (
    SELECT device, start_event AS event, bytes AS allocated, bytes AS active, 0 AS reserved
    FROM blocks
    UNION ALL
    SELECT device, freed_event, -bytes, 0, 0 FROM blocks WHERE freed_event IS NOT NULL
    UNION ALL
    SELECT device, end_event, 0, -bytes, 0 FROM blocks WHERE end_event IS NOT NULL
    UNION ALL
    SELECT device, start_event, 0, 0, bytes FROM segments
    UNION ALL
    SELECT device, end_event, 0, 0, -bytes FROM segments WHERE end_event IS NOT NULL
), sums AS (
    SELECT device, event, sum(allocated) AS allocated, sum(active) AS active,
           sum(reserved) AS reserved
    FROM changes GROUP BY device, event
)
SELECT sums.device, event, time_ns,
       sum(allocated) OVER w AS allocated_bytes,
       sum(active) OVER w AS active_bytes,
       sum(reserved) OVER w AS reserved_bytes
FROM sums JOIN events USING (event)
WINDOW w AS (PARTITION BY sums.device ORDER BY event);

CREATE VIEW step_memory AS
SELECT device, step, steps.start_ns, steps.end_ns,
       count(block) AS blocks,
       ifnull(sum(bytes), 0) AS allocated_bytes,
       ifnull(sum(bytes) FILTER (WHERE freed_step = step), 0) AS freed_in_step_bytes,
       ifnull(sum(bytes) FILTER (WHERE freed_step IS NULL OR freed_step > step), 0) AS kept_bytes
FROM steps LEFT JOIN blocks USING (device, step)
GROUP BY device, step;
)sql";

}  // namespace fragtrace::analyzer
