package interop;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.OutputStream;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.springframework.batch.core.repository.ExecutionContextSerializer;

/** Contexts as Spring Batch 5 writes them by default: Base64 of Java's serialization. */
final class Opaque implements ExecutionContextSerializer {
    @Override
    public void serialize(Map<String, Object> context, OutputStream out) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream objects = new ObjectOutputStream(bytes)) {
            objects.writeObject(new HashMap<>(context));
        }
        out.write(Base64.getEncoder().encode(bytes.toByteArray()));
    }

    @Override
    @SuppressWarnings("unchecked")
    public Map<String, Object> deserialize(InputStream in) throws IOException {
        byte[] bytes = Base64.getDecoder().decode(in.readAllBytes());
        try (ObjectInputStream objects = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
            return (Map<String, Object>) objects.readObject();
        } catch (ClassNotFoundException unknown) {
            throw new IOException(unknown);
        }
    }
}
